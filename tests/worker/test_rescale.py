"""Keys change hands at an epoch mark: what senders, the old owner and the new one do, without Spark."""

import pickle
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import msgspec
import pytest

import penstock
from penstock import state
from penstock.epochs import portions
from penstock.epochs.entries import StateFile
from penstock.epochs.marks import begin_marks
from penstock.epochs.migration import Asked
from penstock.epochs.portions import Change, portions_from
from penstock.epochs.reports import Marked
from penstock.epochs.state_files import read_changes, restored_changes, write_base
from penstock.epochs.storage import LocalStorage
from penstock.flow import Flow
from penstock.wire import frames as wire
from penstock.wire.divisions import Spans, spans_of
from penstock.wire.envelope import Tag
from penstock.wire.keys import KEY_GROUPS, key_group, owner
from penstock.wire.orders import Position, Rescale, SourceOrder, Switches
from penstock.worker import state_keeper, waiting
from penstock.worker.state_store import StateStore
from tests.flow.random_flows import Partitioned
from tests.worker.lone_worker import LoneWorker, lone_worker

SENT = 0.05
"""Longer than a worker takes for what it can do at once."""


def ignore(item: object) -> None:
    """A sink."""


def same(item: int) -> int:
    return item


class Sums:
    of = state.key(int)
    total = state.value(0)
    ends = state.value(0, ttl="20 ms")

    def process(self, item: int, out: penstock.Out[tuple[int, int]]) -> None:
        self.total += 1
        self.ends += 1
        out((self.of, self.total))


def of_replica(replica: int, replicas: int, of: int = 1, among: int = 1) -> list[int]:
    """Keys of a replica, of which there are so many, that were of another among so many."""
    keys = [key for key in range(2000) if owner(key_group(key), replicas) == replica]
    return [key for key in keys if among == 1 or owner(key_group(key), among) == of]


class Bed:
    """A flow whose task `sums` has a pool of four, its checkpoint, and what was written there."""

    def __init__(self, root: Path) -> None:
        self.flow = Flow("moving")
        source = self.flow.source(Partitioned(1), name="source").map(same, name="before")
        keyed = source.by_key(same).task(Sums, name="sums", parallelism=penstock.elastic(1, 4, pool=4))
        keyed.sink(ignore, name="sink")
        self.storage = LocalStorage(root)
        self.log, self.place = begin_marks(self.storage, str(root), -1, {}, Asked(("sums",)))

    @contextmanager
    def worker(self, replicas: int) -> Iterator[LoneWorker]:
        with lone_worker(self.flow, state=self.place) as worker:
            active = worker.switches.active | {"sums": replicas}
            worker.switches = msgspec.structs.replace(worker.switches, active=active, marked=[])
            yield worker

    def known(self, epoch: int, replica: int, totals: dict[int, int]) -> StateFile:
        """A file of another replica."""
        changes = [
            Change(key_group(key), pickle.dumps(key), pickle.dumps(total), name="total")
            for key, total in totals.items()
        ]
        groups = {change.group for change in changes}
        everything = [*portions_from(changes)]
        return write_base(self.storage, "sums", replica, self.place.attempt, epoch, everything, groups)

    def commit(self, epoch: int, *files: StateFile) -> None:
        before = self.log.entry
        self.log.append(msgspec.structs.replace(before, epoch=epoch, files=(*before.files, *files)))


@pytest.fixture
def bed(tmp_path: Path) -> Bed:
    return Bed(tmp_path)


def rescaled(worker: LoneWorker, epoch: int, before: int, after: int, *tables: Spans | None) -> Switches:
    """The switches that a mark brings."""
    return msgspec.structs.replace(
        worker.switches,
        version=worker.switches.version + 1,
        active=worker.switches.active | {"sums": max(before, after)},
        rescales={"sums": Rescale(epoch, before, after, *tables)},
    )


def test_a_sender_divides_keys_anew_behind_the_mark_and_not_before(bed: Bed) -> None:
    with bed.worker(2) as worker:
        worker.start("before")
        first = worker.switches.routes["before->sums"].first
        worker.order(rescaled(worker, 1, 2, 4))  # as it comes to all workers, at any time before the mark
        worker.until_heard()
        worker.give(1, [*range(100)])
        worker.mark(1, sequence=2, switches=rescaled(worker, 1, 2, 4))
        worker.order(msgspec.structs.replace(worker.switches, version=0))  # one that was overtaken
        worker.give(3, [*range(100, 200)])
        worker.end()
        sent = {item: target - first for target, _, envelope in worker.out for item in envelope.items}
    assert sent == {
        **{item: owner(key_group(item), 2) for item in range(100)},
        **{item: owner(key_group(item), 4) for item in range(100, 200)},
    }


def test_a_source_divides_keys_anew_behind_its_mark() -> None:
    flow = Flow("moving")
    numbers = penstock.paced(lambda partition, index, seed: index, rate=2000)
    source = flow.source(numbers, name="s")
    source.by_key(same).task(Sums, name="sums", parallelism=penstock.elastic(1, 4, pool=4)).sink(ignore)
    with lone_worker(flow) as worker:
        active = worker.switches.active | {"sums": 1}
        worker.switches = msgspec.structs.replace(worker.switches, active=active, marked=[])
        (split,) = numbers.splits
        beginning = {split: Position(0, 0)}
        worker.start("s", source=SourceOrder(beginning, beginning, time.monotonic_ns()))
        time.sleep(SENT)
        worker.mark(1, switches=rescaled(worker, 1, 1, 4))
        worker.until(wire.MARKED)
        before = len(worker.out)
        (reached,) = (worker.marked[0][2].positions or {}).values()
        time.sleep(SENT)
        worker.send(wire.frame(wire.WAIT, (1).to_bytes(8, "little")))
        time.sleep(SENT)
        worker.drain()
        waits = len(worker.items())
        time.sleep(SENT)
        worker.drain()
        assert len(worker.items()) == waits, "it waits for the end of the epoch"
        worker.send(wire.frame(wire.GO, (1).to_bytes(8, "little")))
        time.sleep(SENT)
        worker.end()
        assert len(worker.items()) > waits
        first = worker.switches.routes["s->sums"].first
        assert {target - first for target, _, _ in worker.out[:before]} == {0}
        behind = {item: target - first for target, _, one in worker.out[before:] for item in one.items}
        assert min(behind) == reached.ordinal
        assert behind == {item: owner(key_group(item), 4) for item in behind}


def test_the_old_owner_writes_all_it_knows_and_gives_keys_away(bed: Bed) -> None:
    stay, leave = of_replica(0, 2)[:3], of_replica(1, 2)[:3]
    with bed.worker(1) as worker:
        worker.start("sums")
        worker.give(1, [*stay, *leave], stream=1)
        worker.mark(1, sequence=2, switches=rescaled(worker, 1, 1, 2))
        worker.give(3, stay, stream=1)
        worker.mark(2, sequence=4)
        worker.until(wire.MARKED)
        worker.until(wire.MARKED)
        first, second = (said for _, _, said in worker.marked)
        assert (first.replicas, second.replicas) == (1, 2)
        (written,), (later,) = first.files, second.files
        assert {pickle.loads(one.key) for one in read_changes(bed.storage, written)} == {*stay, *leave}
        assert {pickle.loads(one.key) for one in read_changes(bed.storage, later)} == {*stay}
        worker.give(5, leave[:1], stream=1)
        assert "which this replica does not own" in worker.until(wire.FAILED)["failed"]["problem"]


def test_the_new_owner_holds_what_has_moved_until_its_state_is_in_the_log(
    bed: Bed, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(state_keeper, "_CHANGES_PER_BASE", 0)
    mine, coming = of_replica(0, 4)[:2], of_replica(0, 2, of=1, among=4)[:2]
    theirs = bed.known(1, 1, {coming[0]: 40})
    with bed.worker(4) as worker:
        worker.start("sums")
        worker.give(1, mine, stream=1)
        worker.mark(1, sequence=2, switches=rescaled(worker, 1, 4, 2))
        worker.until(wire.MARKED)
        tags = [Tag(place, time.monotonic_ns(), time.monotonic_ns()) for place in range(4)]
        worker.give(3, [coming[0], mine[0], coming[1], mine[1]], stream=1, tags=tags)
        worker.give(4, [mine[0], coming[0]], stream=1)
        time.sleep(SENT)
        worker.drain()
        went_on = [(mine[0], 2), (mine[1], 2), (mine[0], 3)]
        assert worker.items()[2:] == went_on, "what stays goes on"
        bed.commit(1, theirs)
        worker.mark(2, sequence=5)
        worker.until(wire.MARKED)
        assert worker.items()[5:] == [(coming[0], 41), (coming[1], 1), (coming[0], 42)], "in its order"
        (file,) = worker.marked[1][2].files
        written = {pickle.loads(one.key) for one in read_changes(bed.storage, file)}
        assert written == {*mine, *coming}
        (base,) = msgspec.convert(worker.end()["marked"], Marked).files
        files = [theirs, *(one for _, _, said in worker.marked for one in said.files), base]
    assert base.kind == "base", "a slice of it: there were changes since the first one"
    groups = [key_group(key) for key in (*mine, *coming)]
    found = restored_changes(bed.storage, files, "sums", groups)
    everything = {(one.name, pickle.loads(one.key)): one.value for one in found}
    assert pickle.loads(everything["total", coming[0]] or b"") == 42


def test_state_is_taken_in_some_at_a_time_and_other_keys_go_on(
    bed: Bed, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(state_keeper, "_MOMENT_NS", -1)
    monkeypatch.setattr(portions, "_MOST_KEYS", 1)
    take_in = StateStore.apply_part

    def slowly(store: StateStore, portion: portions.Portion) -> None:
        time.sleep(0.0005)
        take_in(store, portion)

    monkeypatch.setattr(StateStore, "apply_part", slowly)
    mine, coming = of_replica(0, 4)[:2], of_replica(0, 2, of=1, among=4)[:300]
    theirs = bed.known(1, 1, dict.fromkeys(coming, 40))
    with bed.worker(4) as worker:
        worker.start("sums")
        worker.mark(1, sequence=1, switches=rescaled(worker, 1, 4, 2))
        worker.until(wire.MARKED)
        worker.give(2, coming, stream=1)
        bed.commit(1, theirs)
        for sequence in range(3, 103):
            worker.give(sequence, mine, stream=1)
        worker.mark(2, sequence=103)
        worker.until(wire.MARKED)
        found = worker.items()
    assert found.index((mine[0], 1)) < found.index((coming[-1], 41)), "it goes on meanwhile"
    assert sorted(set(found)) == sorted(
        [(key, 41) for key in coming] + [(key, count) for key in mine for count in range(1, 101)]
    )


def without(key: int) -> Spans:
    """Replica 1 has the group of this key, and nothing else."""
    return spans_of([1 if group == key_group(key) else 0 for group in range(KEY_GROUPS)])


def test_a_table_moves_single_groups_and_the_next_batch_goes_by_it(bed: Bed) -> None:
    moves, *stay = of_replica(0, 2)[:4]
    comes = of_replica(1, 2)[0]
    table = without(moves)
    theirs = bed.known(1, 1, {comes: 6})
    with bed.worker(2) as worker:
        worker.start("sums")
        worker.give(1, [moves, *stay], stream=1)
        worker.mark(1, sequence=2, switches=rescaled(worker, 1, 2, 2, None, table))
        worker.until(wire.MARKED)
        worker.give(3, [stay[0], comes], stream=1)
        bed.commit(1, *worker.marked[0][2].files, theirs)
        worker.end()
        assert worker.items()[4:] == [(stay[0], 2), (comes, 7)]
        switches = msgspec.structs.replace(worker.switches, tables={"sums": table}, version=9)
        worker.switches = switches
        worker.start("sums", epoch=2)
        worker.give(1, [comes, stay[0]], stream=1)
        worker.end()
        assert worker.items()[6:] == [(comes, 8), (stay[0], 3)], "it goes on with what it has"
    with bed.worker(2) as worker:
        worker.switches = switches
        worker.start("sums", 1, epoch=1)  # a new process
        worker.give(1, [moves], stream=1)
        worker.give(2, [comes], stream=1)
        assert "which this replica does not own" in worker.until(wire.FAILED)["failed"]["problem"]
        worker.drain()
        assert worker.items() == [(moves, 2)]


def test_a_sender_follows_a_table_behind_the_mark(bed: Bed) -> None:
    with bed.worker(2) as worker:
        worker.start("before")
        first = worker.switches.routes["before->sums"].first
        worker.give(1, [*range(50)])
        worker.mark(1, sequence=2, switches=rescaled(worker, 1, 2, 3, None, without(60)))
        worker.give(3, [*range(50, 100)])
        worker.end()
        sent = {item: target - first for target, _, envelope in worker.out for item in envelope.items}
    wanted = {item: owner(key_group(item), 2) for item in range(50)}
    assert sent == wanted | {item: int(key_group(item) == key_group(60)) for item in range(50, 100)}


def test_the_next_mark_and_the_end_wait_for_what_is_held(bed: Bed) -> None:
    (key, *_) = of_replica(3, 4)
    theirs = bed.known(3, 0, {key: 7})
    with bed.worker(1) as worker:
        worker.start("sums", 3, epoch=2)
        worker.mark(3, sequence=1, switches=rescaled(worker, 3, 1, 4))
        worker.until(wire.MARKED)
        worker.give(2, [key], stream=1)
        worker.mark(4, sequence=3)
        time.sleep(SENT)
        worker.drain()
        assert len(worker.marked) == 1
        bed.commit(3, theirs)
        worker.until(wire.MARKED)
        assert worker.items() == [(key, 8)]
        bed.commit(4, *worker.marked[1][2].files)
    with bed.worker(4) as worker:
        worker.switches = rescaled(worker, 9, 1, 4)
        worker.start("sums", 3, epoch=9)  # its bridge has answered the mark for it
        worker.give(1, [key], stream=1)
        worker.send(wire.frame(wire.END, b"\0"))
        time.sleep(SENT)
        worker.drain()
        assert worker.items() == []
        bed.commit(9)
        worker.until(wire.ENDED)
        assert worker.items() == [(key, 9)]


def test_who_holds_too_much_says_so_once(bed: Bed, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(waiting, "LIMIT_BYTES", 100)
    keys = of_replica(1, 2)
    with bed.worker(1) as worker:
        worker.start("sums", 1)
        worker.mark(1, sequence=1, switches=rescaled(worker, 1, 1, 2))
        for sequence in range(2, 5):
            worker.give(sequence, keys[:200], stream=1)
        worker.until(wire.FULL)
        time.sleep(SENT)
        bed.commit(1)
        worker.mark(2, sequence=5)
        seen = [kind for kind, _ in worker.frames_until(wire.MARKED)]
        assert wire.FULL not in seen
        assert len(worker.items()) == 600


def test_values_with_an_end_leave_nothing_behind(bed: Bed) -> None:
    """A value whose owner is another now must not expire here."""
    (gone, *_), (stays, *_) = of_replica(1, 2), of_replica(0, 2)
    with bed.worker(1) as worker:
        worker.start("sums")
        worker.give(1, [gone, stays], stream=1)
        worker.mark(1, sequence=2, switches=rescaled(worker, 1, 1, 2))
        worker.until(wire.MARKED)
        bed.commit(1)
        time.sleep(SENT)
        worker.give(3, [stays], stream=1)
        worker.mark(2, sequence=4, switches=rescaled(worker, 2, 2, 1))
        worker.until(wire.MARKED)
        bed.commit(2, *worker.marked[0][2].files, *worker.marked[1][2].files)
        worker.give(5, [gone, stays], stream=1)
        worker.end()
    assert sorted(worker.items()) == sorted([(gone, 1), (stays, 1), (stays, 2), (gone, 2), (stays, 3)])
