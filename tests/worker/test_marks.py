"""A worker that is given epoch marks: it ships all, writes down what has changed, answers, and goes on."""

import errno
import os
import pickle
import time
from pathlib import Path

import msgspec
import pytest

import penstock
from penstock import state
from penstock.epochs.marks import begin_marks
from penstock.epochs.migration import Asked
from penstock.epochs.reports import Marked
from penstock.epochs.state_files import read_changes
from penstock.epochs.storage import LocalStorage, SystemDisk
from penstock.flow import Flow
from penstock.wire import frames as wire
from penstock.wire.orders import Position, SourceOrder
from penstock.wire.reports import Failure
from tests.flow.random_flows import Partitioned
from tests.spark.items import numbered
from tests.worker.lone_worker import lone_worker


def ignore(item: object) -> None:
    """A sink."""


def twice(item: int) -> int:
    return 2 * item


def parity(item: int) -> int:
    return item % 2


async def asked(item: int) -> int:
    return 2 * item


def doubles(items: list[int]) -> list[int]:
    return [2 * item for item in items]


@pytest.mark.parametrize(("form", "body"), [("map", twice), ("map", asked), ("map_batches", doubles)])
def test_all_that_came_before_is_shipped_and_acknowledged(form: str, body: object) -> None:
    flow = Flow("marked")
    source = flow.source(Partitioned(1), name="source")
    getattr(source, form)(body, name="middle").batched("10 s").sink(ignore, name="sink")
    with lone_worker(flow) as worker:
        worker.start("middle")
        with worker.together():
            worker.give(1, [1, 2])
            worker.give(2, [3])
            worker.mark(7, sequence=3)
            worker.give(4, [4])
        worker.until(wire.MARKED)
        assert worker.marked == [(3, 7, Marked())]
        assert worker.items() == [2, 4, 6], "what follows the mark is not before it"
        worker.end()
        assert worker.items() == [2, 4, 6, 8]
        assert worker.acknowledged == 4


class Sums:
    of = state.key(int)
    total = state.value(0)

    def process(self, item: int, out: penstock.Out[int]) -> None:
        self.total += item
        out(self.total)


def test_state_is_written_down_and_read_again(tmp_path: Path) -> None:
    flow = Flow("marked")
    keyed = flow.source(Partitioned(1), name="source").by_key(parity)
    keyed.task(Sums, name="sums").sink(ignore, name="sink")
    storage = LocalStorage(tmp_path)
    log, place = begin_marks(storage, str(tmp_path), -1, {}, Asked(("sums",)))
    with lone_worker(flow, state=place) as worker:
        worker.start("sums")
        worker.give(1, [1, 2, 3])
        worker.mark(1, sequence=2)
        worker.give(3, [5])
        worker.mark(2, sequence=4)
        worker.mark(3, sequence=5)
        worker.give(6, [10])
        ended = msgspec.convert(worker.end()["marked"], Marked)
        first, second, third = (said for _, _, said in worker.marked)
        assert worker.items() == [1, 2, 4, 9, 12]
    assert first.replicas == second.replicas == 1
    assert [file.kind for said in (first, second, ended) for file in said.files] == [
        "base",
        "changes",
        "changes",
    ]
    assert third.files == (), "nothing has changed"
    assert [file.epoch for file in ended.files] == [4], "the epoch after the last mark"
    (change,) = read_changes(storage, second.files[0])
    assert (change.name, pickle.loads(change.key)) == ("total", 1)
    assert pickle.loads(change.value or b"") == 9
    files = (*first.files, *second.files)
    entry = msgspec.structs.replace(log.entry, epoch=2, files=files, pools={"sums": 1})
    log.append(entry)
    with lone_worker(flow, state=place) as worker:
        worker.start("sums", epoch=2)
        worker.give(1, [1, 2])
        worker.end()
        assert worker.items() == [10, 4], "what came after the entry is not in it"


def no_room(disk: SystemDisk, path: Path, content: bytes) -> None:
    path.touch()
    raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))


def test_state_that_finds_no_room_is_told_and_is_no_error_of_the_task(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    flow = Flow("marked")
    keyed = flow.source(Partitioned(1), name="source").by_key(parity)
    keyed.task(Sums, name="sums").sink(ignore, name="sink")
    _, place = begin_marks(LocalStorage(tmp_path), str(tmp_path), -1, {}, Asked(("sums",)))
    monkeypatch.setattr(SystemDisk, "write_new", no_room)
    with lone_worker(flow, state=place) as worker:
        worker.start("sums")
        worker.give(1, [1])
        worker.mark(1, sequence=2)
        failed = msgspec.convert(worker.until(wire.FAILED)["failed"], Failure)
    assert failed == Failure(
        "sums",
        0,
        f"writing its state failed, in the checkpoint {tmp_path}: [Errno 28] No space left on device",
        may_pass=True,
    )
    assert worker.marked == []


def test_a_source_says_once_where_it_stands_and_waits_if_it_is_to() -> None:
    flow = Flow("marked")
    flow.source(numbered(1_000_000, rate=2_000), name="source").batched("10 s").sink(ignore, name="sink")
    beginning = {split: Position(0, 0) for split in numbered(1).splits}
    with lone_worker(flow) as worker:
        worker.start("source", source=SourceOrder(beginning, beginning, time.monotonic_ns()))
        time.sleep(0.3)  # also on a busy machine it has read something then
        worker.mark(1)
        worker.until(wire.MARKED)
        worker.mark(2, quiet=True, committed=1)
        worker.until(wire.MARKED)
        shipped = len(worker.items())
        (_, _, first), (_, epoch, second) = worker.marked
        assert epoch == 2
        assert first.positions is not None
        assert second.positions is not None
        (reached,) = second.positions.values()
        assert reached.ordinal == shipped, "all before the position was shipped"
        assert 0 < next(iter(first.positions.values())).ordinal <= shipped
        time.sleep(0.05)
        worker.mark(3)
        worker.until(wire.MARKED)
        assert worker.marked[2][2] == second, "it waits for the end of the epoch"
        worker.mark(4, quiet=True)
        worker.until(wire.MARKED)
        worker.send(wire.frame(wire.GO, (4).to_bytes(8, "little")))
        time.sleep(0.05)
        ended = worker.end()
        (last,) = ended["source"]["positions"].values()
        assert last["ordinal"] == len(worker.items())
        assert last["ordinal"] > reached.ordinal, "it has gone on"


def test_a_sink_prepares_at_marks_and_at_the_end_and_nobody_sees_it(tmp_path: Path) -> None:
    flow = Flow("marked")
    flow.source(Partitioned(1), name="source").sink(penstock.jsonl(tmp_path / "out"), name="files")
    _, place = begin_marks(LocalStorage(tmp_path / "epochs"), str(tmp_path / "epochs"), -1, {}, Asked(()))
    with lone_worker(flow, state=place) as worker:
        worker.start("files", replica=2)
        worker.give(1, [1, 2])
        worker.mark(7, sequence=2)
        worker.mark(8, sequence=3)
        worker.give(4, [3])
        ended = msgspec.convert(worker.end()["marked"], Marked)
        worker.start("files", replica=2, epoch=11)
        worker.give(5, [4])
        closed = msgspec.convert(worker.end(last=True)["marked"], Marked)
    (first,), none, (last,), (gone,) = (
        said.handles for said in (*(said for _, _, said in worker.marked), ended, closed)
    )
    assert none == ()
    assert [(h.task, h.replica, h.attempt, h.epoch) for h in (first, last, gone)] == [
        ("files", 2, 1, 7),
        ("files", 2, 1, 9),
        ("files", 2, 1, 12),
    ]
    assert not [*(tmp_path / "out").rglob("*.jsonl")]
    sink = penstock.jsonl(tmp_path / "anywhere")
    for handle in (first, last, gone):
        sink.commit(handle.content)
    files = sorted((tmp_path / "out").glob("*.jsonl"))
    assert [file.read_text() for file in files] == ["1\n2\n", "3\n", "4\n"]


def test_a_sink_prepares_nothing_where_commits_are_boundaries(tmp_path: Path) -> None:
    flow = Flow("marked")
    flow.source(Partitioned(1), name="source").sink(penstock.jsonl(tmp_path), name="files")
    with lone_worker(flow) as worker:
        worker.start("files")
        worker.give(1, [1, 2])
        worker.end()
    assert (tmp_path / "part-00000.jsonl").read_text() == "1\n2\n"


class Wordy:
    def write(self, item: int) -> None: ...

    def prepare(self, epoch: int) -> str | None:
        return {"epoch": epoch}  # type: ignore[return-value]

    def commit(self, description: str) -> None: ...


def test_a_description_must_be_text(tmp_path: Path) -> None:
    flow = Flow("marked")
    flow.source(Partitioned(1), name="source").sink(Wordy, name="wordy")
    _, place = begin_marks(LocalStorage(tmp_path), str(tmp_path), -1, {}, Asked(()))
    with lone_worker(flow, state=place) as worker:
        worker.start("wordy")
        worker.mark(1, sequence=1)
        problem = worker.until(wire.FAILED)["failed"]["problem"]
    assert "prepare(epoch) must return a string or None, not {'epoch': 1}" in problem


def halved(item: int) -> int:
    return item // 2


def test_a_mark_passes_a_chain_and_a_sink_that_prepares_comes_and_goes_behind_one(tmp_path: Path) -> None:
    flow = Flow("marked")
    keyed = flow.source(Partitioned(1), name="source").by_key(parity).task(Sums, name="sums")
    files = penstock.jsonl(tmp_path / "out")
    keyed.forward().map(halved, name="halved").forward().sink(files, name="files")
    storage = LocalStorage(tmp_path / "epochs")
    _, place = begin_marks(storage, str(tmp_path / "epochs"), -1, {}, Asked(("sums",)))
    with lone_worker(flow, state=place) as worker:

        def joins() -> list[str]:
            hosted: list[str] = msgspec.json.decode(worker.frames_until(wire.JOIN)[-1][1])
            worker.tell(wire.frame(wire.JOINED))
            return hosted

        worker.start("sums")
        worker.give(1, [0])
        worker.until(wire.OUT)  # the batch has begun
        worker.change(chains=[["sums", "halved", "files"]])
        worker.until_heard()
        worker.give(2, [2])
        assert joins() == ["halved"], "when it has heard of it"
        worker.give(3, [4])
        worker.mark(1, sequence=4)
        assert joins() == ["halved", "files"]
        assert [epoch for _, epoch, _ in worker.marked] == [1], "it is answered before"
        worker.give(5, [6])
        worker.mark(2, sequence=6)
        worker.give(7, [8])
        worker.until(wire.MARKED)
        worker.until(wire.ACK)  # what is heard now comes after the mark
        worker.change(chains=[])
        worker.until_heard()
        worker.give(8, [0])
        worker.mark(3, sequence=9)
        assert joins() == []
        worker.give(10, [10])
        worker.end()
        streams = [(worker.graph.streams[one.stream].name, one.items) for _, _, one in worker.out]
        assert streams[-2:] == [("halved->files", [3]), ("sums->halved", [30])]
    first, second, third = (said for _, _, said in worker.marked)
    assert first.handles == ()
    assert [(handle.task, handle.epoch) for handle in (*second.handles, *third.handles)] == [
        ("files", 2),
        ("files", 3),
    ]
    assert [file.task for said in (first, second, third) for file in said.files] == ["sums"] * 3
    for handle in (*second.handles, *third.handles):
        files.commit(handle.content)
    written = sorted((tmp_path / "out").glob("*.jsonl"))
    assert [file.read_text() for file in written] == ["6\n", "10\n10\n"]
