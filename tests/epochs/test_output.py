"""Output that is prepared at marks and committed by the driver: once each, whatever ends at which moment."""

import json
import os
import threading
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, suppress
from pathlib import Path
from typing import Any, ClassVar, cast

import msgspec
import pytest

from penstock.epochs.boundary import Place
from penstock.epochs.entries import Entry, Handle
from penstock.epochs.errors import SupersededError
from penstock.epochs.log import Log, newest_entry
from penstock.epochs.marks import begin_marks
from penstock.epochs.migration import Asked
from penstock.epochs.output import OutputError, Sinks
from penstock.epochs.reports import Done, Epochs, Marked
from penstock.epochs.storage import LocalStorage
from penstock.flow import Flow
from penstock.io.epoch_files import HIDDEN
from penstock.io.jsonl import Jsonl, jsonl
from penstock.io.protocol import CommitContext, FencedError
from penstock.spark.committing import Committing, _Commits, _Open
from penstock.wire.orders import Position
from tests.epochs.crashing_disk import Crash
from tests.epochs.test_boundary import Quick
from tests.flow.random_flows import Partitioned
from tests.io.sink_context import FakeContext

ITEMS = 14
REPLICAS = 2


class Moments:
    """Counts what is done to files, by the log and by sinks, and ends the process before one of them."""

    def __init__(self) -> None:
        self.passed: list[str] = []
        self.last: int | None = None

    def count(self, what: str) -> None:
        if self.last is not None and len(self.passed) == self.last:
            raise Crash
        self.passed.append(what)

    def before(self, what: str, call: Callable[..., Any]) -> Callable[..., Any]:
        def counted(*given: Any, **more: Any) -> Any:
            self.count(what)
            return call(*given, **more)

        return counted

    @contextmanager
    def counted(self, last: int | None = None) -> Iterator[None]:
        """Sinks sync nothing here: the files of a process that has ended are there."""
        self.passed, self.last = [], last
        with pytest.MonkeyPatch.context() as patch:
            for name in ("fsync", "fdatasync"):
                patch.setattr(os, name, self.before(name, lambda descriptor: None))
            for name in ("write", "link", "unlink"):
                patch.setattr(os, name, self.before(name, getattr(os, name)))
            patch.setattr(Path, "replace", self.before("replace", Path.replace))
            yield


class Life:
    """A flow from one start to its end: a source, and two replicas of a sink; all of it in this process."""

    opened: ClassVar[list[Jsonl]] = []

    def __init__(self, root: Path) -> None:
        storage = LocalStorage(root / "epochs", Quick())
        sinks = Sinks({"out": jsonl(root / "out")})
        self.log, place = begin_marks(storage, str(root / "epochs"), -1, {}, Asked(()), 2, sinks)
        entry = self.log.entry
        self.epoch = entry.epoch
        self.read = entry.positions.get("items", {}).get("all", Position(0, 0)).ordinal
        self.epochs = Epochs(["items", "out"], entry)
        committing = Committing(cast("Any", self), 1.0, keep=2)
        self.commits = _Commits(
            committing, cast("Any", self), self.log, self.epochs, sinks, threading.Event()
        )
        self.sinks: list[Jsonl] = []
        for replica in range(REPLICAS):
            sink = jsonl(root / "out")
            sink.open(FakeContext("out", replica, attempt=place.attempt_name))
            self.sinks.append(sink)
            self.opened.append(sink)
        self.attempt = place.attempt

    def epoch_over(self, epoch: int, *, committed: bool) -> None:
        """In place of the bridge."""

    def mark(self, *, valid: bool = True, last: bool = False) -> None:
        self.epoch += 1
        for replica, sink in enumerate(self.sinks):
            content = sink.prepare(self.epoch)
            handle = Handle(
                task="out", replica=replica, attempt=self.attempt, epoch=self.epoch, content=content or ""
            )
            said = Marked(handles=() if content is None else (handle,))
            self.epochs.hear(Done("out", replica, REPLICAS, self.epoch, valid, last, said))
        at = Position(self.read, self.read)
        self.epochs.hear(Done("items", 0, 1, self.epoch, last=last, said=Marked(positions={"all": at})))
        self.commits._open = _Open(self.epoch, 0.0)
        if self.epochs.verdict(self.epoch):
            self.commits._commit(self.commits._open, 2, batch_is_over=last)
        else:
            self.commits._void()

    def finish(self) -> None:
        """Every third item an epoch, every second of them void; replica 1 gets few."""
        while self.read < ITEMS:
            self.sinks[self.read % 4 == 3].write(self.read)
            self.read += 1
            if self.read % 3 == 0:
                self.mark(valid=self.read % 2 == 0)
        self.mark(last=True)


def seen(root: Path) -> Counter[int]:
    """What a reader finds, who never finds half a line."""
    files = (root / "out").rglob("*.jsonl")
    return Counter(json.loads(line) for file in files for line in file.read_bytes().splitlines())


def test_every_item_is_seen_once_whatever_ends_before_any_operation_twice(tmp_path: Path) -> None:
    moments = Moments()
    with moments.counted():
        Life(tmp_path / "whole").finish()
    operations = list(moments.passed)
    assert {"write", "replace", "fdatasync", "fsync", "link", "unlink"} == {*operations}
    assert seen(tmp_path / "whole") == Counter(range(ITEMS))
    for last in range(len(operations)):
        root = tmp_path / str(last)
        before = Counter[int]()
        ends: list[tuple[int, AbstractContextManager[Any]]]
        ends = [(last, pytest.raises(Crash)), (last % 17, suppress(Crash))]
        for moment, end in ends:
            with end, moments.counted(moment):
                Life(root).finish()
            while Life.opened:
                Life.opened.pop().close()
            found = seen(root)
            assert not before - found, "what was seen stays"
            assert max(found.values(), default=1) == 1, f"operation {moment} of those before {last}"
            before = found
        with moments.counted():
            Life(root).finish()
        assert seen(root) == Counter(range(ITEMS)), f"operation {last}: {operations[last]}"
        assert not [*(root / "out" / HIDDEN).iterdir()], "what is in no entry is thrown away"


def test_output_is_seen_no_sooner_than_the_log_has_it_and_the_entry_at_the_end_names_none(
    tmp_path: Path,
) -> None:
    life = Life(tmp_path)
    life.sinks[0].write(1)
    life.read = 1
    life.mark(valid=False)
    assert seen(tmp_path) == Counter()
    assert newest_entry(life.log.storage) == life.log.entry
    assert not life.log.entry.handles
    life.mark()
    assert seen(tmp_path) == Counter([1])
    assert [handle.epoch for handle in life.log.entry.handles] == [life.epoch - 1]
    life.sinks[1].write(2)
    life.mark(last=True)
    assert seen(tmp_path) == Counter([1, 2])
    assert life.log.entry.handles == ()
    assert life.log.entry.epoch == life.epoch


def test_a_start_commits_what_the_newest_entry_names_or_says_who_could(tmp_path: Path) -> None:
    life = Life(tmp_path)
    life.sinks[0].write(1)
    life.mark()
    (handle,) = life.log.entry.handles
    done = Path(handle.content)
    done.replace(done.parent / HIDDEN / f"{done.name}.prepared")  # as if the driver had died before that
    root = str(tmp_path / "epochs")

    def begin(**sinks: Jsonl) -> tuple[Log, Place]:
        return begin_marks(life.log.storage, root, -1, {}, Asked(()), sinks=Sinks(sinks))

    with pytest.raises(OutputError, match=r'sink "out" has prepared output in epoch 1, which only it can'):
        begin()
    assert seen(tmp_path) == Counter()
    log, place = begin(out=jsonl(tmp_path / "elsewhere"))
    assert seen(tmp_path) == Counter([1])
    assert log.entry.handles == ()
    begin()
    assert place.attempt_name == f"{log.entry.settings['name']}-00000003"
    assert life.log.entry.settings["name"] == log.entry.settings["name"]


class Published:
    """A sink whose class is given: the driver makes an object of it."""

    done: ClassVar[list[str]] = []

    def write(self, item: object) -> None: ...

    def prepare(self, epoch: int) -> str | None: ...

    def commit(self, description: str) -> None:
        if description == "fails":
            raise ConnectionError("no route")
        self.done.append(description)


def test_handles_are_committed_in_the_order_of_epochs_and_failures_are_named() -> None:
    flow = Flow("f")
    source = flow.source(Partitioned(1), name="numbers")
    source.sink(Published, name="out")
    source.sink(print)
    sinks = Sinks.of(flow.graph())
    assert sinks.names == ["out"]
    sinks.begin("5e1f00aa-00000001", Path())
    Published.done.clear()
    first = Handle(task="out", replica=1, attempt=1, epoch=8, content="8-1")
    others = [
        msgspec.structs.replace(first, replica=0, epoch=9, content="9-0"),
        msgspec.structs.replace(first, replica=0, content="8-0"),
    ]
    entry = Entry(kind="commit", attempt=1, epoch=9, handles=(*others, first))
    sinks.commit(entry)
    assert Published.done == ["8-0", "8-1", "9-0"]
    with pytest.raises(OutputError, match=r'"out" could not commit .* in epoch 8: ConnectionError: no route'):
        sinks.commit(
            msgspec.structs.replace(entry, handles=(msgspec.structs.replace(first, content="fails"),))
        )


class Connected:
    """A sink for which the driver is connected, and that another driver may have taken over."""

    def __init__(self) -> None:
        self.told: list[Any] = []
        self.taken = False

    def write(self, item: object) -> None: ...

    def prepare(self, epoch: int) -> str | None: ...

    def committer(self, context: CommitContext) -> "Connected":
        self.told.append((context.task, context.attempt, context.prepared_in))
        return self

    def commit(self, attempt: int, epoch: int, descriptions: Sequence[str]) -> None:
        if self.taken:
            raise FencedError("another driver has it")
        self.told.append((attempt, epoch, descriptions))

    def close(self) -> None:
        self.told.append("closed")


def test_a_connected_sink_commits_an_entry_at_once_and_ends_if_another_driver_has_it(tmp_path: Path) -> None:
    sink, storage = Connected(), LocalStorage(tmp_path, Quick())
    sinks = Sinks({"out": sink})
    log, place = begin_marks(storage, str(tmp_path), -1, {}, Asked(()), sinks=sinks)
    assert sink.told == [("out", place.attempt_name, place.prepared_in)]
    handles = tuple(
        Handle(task="out", replica=replica, attempt=1, epoch=epoch, content=f"{epoch}-{replica}")
        for epoch, replica in ((2, 0), (1, 1), (1, 0))
    )
    log.append(msgspec.structs.replace(log.entry, epoch=3, handles=handles))
    (tmp_path / "prepared").mkdir()
    (tmp_path / "prepared" / "left").touch()
    sink.told.clear()
    again, _ = begin_marks(storage, str(tmp_path), -1, {}, Asked(()), sinks=sinks)
    assert again.entry.attempt == 2
    assert sink.told[2:] == [(1, 3, ["1-0", "1-1", "2-0"])], "the numbers are those of the entry"
    assert not [*(tmp_path / "prepared").iterdir()], "what is in no entry is thrown away"
    sink.taken = True
    with pytest.raises(SupersededError, match='sink "out": another driver has it'):
        sinks.commit(log.entry)
