"""The thread that orders epochs and appends entries, against a bridge that is this test."""

import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

import msgspec
import pytest

from penstock.epochs.entries import Handle
from penstock.epochs.errors import SupersededError
from penstock.epochs.log import Log, newest_entry
from penstock.epochs.marks import begin_marks
from penstock.epochs.migration import Asked
from penstock.epochs.output import Sinks
from penstock.epochs.reports import VOIDS_BEFORE_QUIET, Done, Marked
from penstock.epochs.storage import LocalStorage
from penstock.spark.committing import Committing
from penstock.wire.orders import Position
from tests.epochs.test_boundary import Quick

if TYPE_CHECKING:
    from penstock.spark.bridge import Bridge


class Stages:
    """A source and a task, which answer each order at once; `valid` says what the task thinks of it."""

    def __init__(self) -> None:
        self.valid: Callable[[int], bool] = lambda _: True
        self.orders: list[tuple[int, bool]] = []
        self.over: list[tuple[int, bool]] = []
        self.ended = threading.Event()
        self.end = 0
        self.reads = True
        self.adopted = threading.Event()
        self._waiting: list[Done] = []
        self._woken = threading.Event()
        self._epoch = 0
        self._lock = threading.Lock()

    def order_epoch(self, *, quiet: bool) -> int:
        with self._lock:
            if self.end:
                return 0
            self._epoch += 1
            self.orders.append((self._epoch, quiet))
            self._report(self._epoch, valid=self.valid(self._epoch), last=False)
            return self._epoch

    def next_epoch(self) -> int:
        with self._lock:
            return 0 if self.end or not self.reads else self._epoch + 1

    def await_adopted(self, timeout_ms: int) -> bool:
        return self.adopted.wait(timeout_ms / 1000)

    def end_batch(self) -> None:
        with self._lock:
            self._epoch += 1
            self.end = self._epoch
            self._report(self._epoch, valid=True, last=True)

    def _report(self, epoch: int, *, valid: bool, last: bool) -> None:
        at = {"all": Position(10 * epoch, 10 * epoch)}
        handle = Handle(task="work", replica=0, attempt=1, epoch=epoch, content=f"output {epoch}")
        self._waiting += [
            Done("numbers", 0, 1, epoch, last=last, said=Marked(positions=at)),
            Done("work", 0, 1, epoch, valid, last, Marked(handles=(handle,))),
        ]

    def await_done(self, known_end: int, missing: int, timeout_ms: int) -> bytes:
        deadline_s = time.monotonic() + timeout_ms / 1000
        while time.monotonic() < deadline_s and len(self._waiting) < missing and self.end == known_end:
            if self._woken.wait(0.001):
                break
        self._woken.clear()
        with self._lock:
            reports, self._waiting = [{"done": done} for done in self._waiting], []
            return msgspec.json.encode({"end": self.end, "reports": reports})

    def wake(self) -> None:
        self._woken.set()

    def epoch_over(self, epoch: int, *, committed: bool) -> None:
        with self._lock:
            self.over.append((epoch, committed))
            self.end = 0 if epoch == self.end else self.end

    def end_query(self) -> None:
        self.ended.set()


class Output:
    """Notes what it commits, and what the log had then; `fails` at one of them."""

    def __init__(self, storage: LocalStorage) -> None:
        self.storage = storage
        self.seen: list[str] = []
        self.fails: str | None = None

    def prepare(self, epoch: int) -> str | None:
        raise AssertionError("that is up to workers")

    def commit(self, description: str) -> None:
        if description == self.fails:
            raise OSError("no room")
        newest = newest_entry(self.storage)
        assert newest is not None
        assert description in {handle.content for handle in newest.handles}
        self.seen.append(description)


class Bed:
    def __init__(self, root: Path) -> None:
        self.storage = LocalStorage(root, Quick())
        self.output = Output(self.storage)
        self.stages = Stages()
        self.committing = Committing(cast("Bridge", self.stages), 0.01, keep=2)
        self.sinks = Sinks({"work": self.output})
        self.log, _ = begin_marks(self.storage, str(root), -1, {}, Asked(()), sinks=self.sinks)

    def begin(self) -> None:
        self.committing.begin(self.log, ["numbers", "work"], self.sinks)

    def newest(self) -> Any:
        entry = newest_entry(self.storage)
        assert entry is not None
        return entry


@pytest.fixture
def bed(tmp_path: Path) -> Iterator[Bed]:
    made = Bed(tmp_path)
    yield made
    made.committing.end()


def until(met: Callable[[], bool]) -> None:
    deadline_s = time.monotonic() + 10
    while not met():
        assert time.monotonic() < deadline_s, "waited too long"
        time.sleep(0.002)


def test_epochs_are_ordered_one_after_the_other_and_committed(bed: Bed) -> None:
    bed.begin()
    until(lambda: bed.committing.totals.count >= 3)
    bed.committing.end()
    over = bed.stages.over
    assert over[:3] == [(1, True), (2, True), (3, True)]
    entry = bed.newest()
    assert (entry.epoch, entry.attempt) == (over[-1][0], 1)
    assert entry.positions["numbers"]["all"] == Position(10 * entry.epoch, 10 * entry.epoch)
    assert len(bed.storage.names("log")) == 2
    totals = bed.committing.totals
    assert (totals.epoch, totals.voids) == (entry.epoch, 0)
    assert totals.took_ms is not None
    orders = len(bed.stages.orders)
    time.sleep(0.05)
    assert len(bed.stages.orders) == orders, "it has ended"


def test_void_epochs_have_no_entry_and_after_three_sources_wait(bed: Bed) -> None:
    bed.stages.valid = lambda epoch: epoch > VOIDS_BEFORE_QUIET
    bed.begin()
    until(lambda: bed.committing.totals.count >= 2)
    assert bed.stages.orders[:5] == [(1, False), (2, False), (3, False), (4, True), (5, False)]
    assert bed.stages.over[:5] == [(1, False), (2, False), (3, False), (4, True), (5, True)]
    assert bed.committing.totals.voids == VOIDS_BEFORE_QUIET


def test_the_end_of_a_batch_is_an_entry_and_the_next_goes_on(bed: Bed) -> None:
    bed.begin()
    until(lambda: bed.committing.totals.count >= 1)
    bed.stages.end_batch()
    end = bed.stages.end
    until(lambda: (end, True) in bed.stages.over)
    until(lambda: bed.stages.over[-1][0] > end)
    assert bed.newest().epoch > end


def test_an_epoch_that_is_wanted_sooner_is_not_waited_for(bed: Bed) -> None:
    bed.committing = Committing(cast("Bridge", bed.stages), 3600, keep=2)
    bed.stages.adopted.set()
    bed.begin()
    bed.committing.hasten()
    until(lambda: bed.committing.totals.count == 1)
    moving = bed.committing.move(lambda epoch: None)
    assert moving.over.wait(10)
    assert bed.newest().epoch == moving.epoch == 2


def test_output_is_committed_after_its_entry_and_before_anybody_hears_of_it(bed: Bed) -> None:
    bed.stages.valid = lambda epoch: epoch != 2
    bed.begin()
    until(lambda: bed.committing.totals.count >= 3)
    bed.stages.end_batch()
    end = bed.stages.end
    until(lambda: (end, True) in bed.stages.over)
    bed.committing.end()
    last, _ = bed.stages.over[-1]
    assert bed.output.seen == [f"output {epoch}" for epoch in range(1, last + 1)]


def test_output_that_cannot_be_committed_ends_the_run_and_the_next_begins_with_it(bed: Bed) -> None:
    bed.output.fails = "output 2"
    bed.begin()
    assert bed.stages.ended.wait(10), "the query is ended"
    until(lambda: bed.committing.problem is not None)
    assert str(bed.committing.problem) == (
        'sink "work" could not commit what it had prepared in epoch 2: OSError: no room'
    )
    assert bed.stages.over == [(1, True)]
    assert bed.newest().epoch == 2
    bed.output.fails = None
    begin_marks(bed.storage, "", -1, {}, Asked(()), sinks=Sinks({"work": bed.output}))
    assert bed.output.seen == ["output 1", "output 2"]


def test_a_driver_that_another_has_followed_commits_nothing_more(bed: Bed) -> None:
    Log.begin(bed.storage)
    bed.begin()
    assert bed.stages.ended.wait(10), "the query is ended"
    until(lambda: bed.committing.problem is not None)
    assert isinstance(bed.committing.problem, SupersededError)
    assert bed.committing.totals.count == 0
    assert bed.stages.over == []
    bed.sinks = Sinks({"work": bed.output})
    bed.log, _ = begin_marks(bed.storage, "", -1, {}, Asked(()), sinks=bed.sinks)
    bed.stages = stages = Stages()
    bed.committing._bridge = cast("Bridge", stages)
    bed.begin()
    until(lambda: bed.committing.totals.count >= 1)
    assert bed.committing.problem is None, "another run begins anew"


def test_an_epoch_in_which_keys_move_is_ordered_at_once_when_everybody_knows_of_it(bed: Bed) -> None:
    bed.committing = Committing(cast("Bridge", bed.stages), 600.0, keep=2)
    bed.begin()
    told: list[int] = []
    moving = bed.committing.move(told.append)
    until(lambda: told == [1])
    time.sleep(0.05)
    assert bed.stages.orders == [], "some do not know yet"
    assert not moving.over.is_set()
    bed.stages.adopted.set()
    assert moving.over.wait(10)
    assert bed.stages.over == [(1, True)]
    assert bed.newest().epoch == 1
    assert not moving.withdraw(), "it is done"
    assert bed.committing.moving is None
    time.sleep(0.05)
    assert bed.stages.orders == [(1, False)], "the next comes when it is time"


def test_what_is_told_is_done_by_the_end_of_the_batch_if_that_comes_first(bed: Bed) -> None:
    bed.committing = Committing(cast("Bridge", bed.stages), 600.0, keep=2)
    bed.begin()
    told: list[int] = []
    moving = bed.committing.move(told.append)
    until(lambda: told == [1])
    bed.stages.end_batch()
    assert moving.over.wait(10)
    assert (bed.stages.orders, bed.stages.over) == ([], [(1, True)])


def test_what_is_not_told_can_be_withdrawn(bed: Bed) -> None:
    bed.stages.reads = False
    bed.begin()
    told: list[int] = []
    moving = bed.committing.move(told.append)
    time.sleep(0.05)
    assert moving.withdraw()
    bed.stages.reads = True
    until(lambda: bed.committing.totals.count >= 2)
    assert told == []
    assert not moving.over.is_set()


def test_an_epoch_is_hastened_once_when_everybody_knows_what_it_is_for(bed: Bed) -> None:
    bed.committing = Committing(cast("Bridge", bed.stages), 600.0, keep=2)
    bed.begin()
    bed.committing.hasten()
    time.sleep(0.05)
    assert bed.stages.orders == [], "some do not know yet"
    bed.stages.adopted.set()
    until(lambda: bed.committing.totals.count == 1)
    time.sleep(0.05)
    assert bed.stages.orders == [(1, False)]
