"""Tasks, names and classes that have changed since state was committed."""

import operator
from pathlib import Path
from typing import Any

import pytest

import penstock
from penstock import state
from penstock.epochs.boundary import Place, begin, epoch_of
from penstock.epochs.errors import LogError
from penstock.epochs.looking import look
from penstock.epochs.marks import begin_marks
from penstock.epochs.migration import Asked, forms_of
from penstock.epochs.portions import NotReadableError
from penstock.epochs.reports import Done, Epochs, Marked
from penstock.epochs.storage import LocalStorage
from penstock.flow.errors import FlowError
from penstock.state import StateError, declared
from penstock.wire.divisions import Division
from penstock.worker.context import Context
from penstock.worker.outbox import Outbox
from penstock.worker.state_keeper import Keeper, MarkKeeper, StateKeeper
from penstock.worker.state_store import StateStore, store_of
from tests.epochs.test_boundary import ITEMS, Quick, same

Body = type[Any]


class Visits:
    seen = state.value(0)
    pages = state.list_of(int)
    total = state.per_replica(0, merge=operator.add)

    def process(self, item: int, out: Any) -> None:
        self.seen += 1
        self.pages.append(item)
        self.total += 1


class Renamed(Visits):
    """`seen` has another name, and pages are a dictionary in version 2."""

    seen = None  # type: ignore[assignment]
    count = state.value(0, was="seen")
    pages: Any = state.map_of(
        int, int, version=2, migrate=lambda pages, version: dict.fromkeys(pages, version)
    )

    def process(self, item: int, out: Any) -> None:
        self.count += 1
        self.pages[item] = 9


class Running:
    """One replica of a task with this body, on a checkpoint whose commits are boundaries."""

    def __init__(self, root: Path, body: Body, batch: int, name: str = "visits", **asked: Any) -> None:
        self.root, self.batch, self.name = root, batch, name
        self.storage = LocalStorage(root / "epochs", Quick())
        flow = penstock.Flow("kept")
        flow.source(ITEMS, name="items").by_key(same).task(body, name=name).sink(print)
        graph = flow.graph()
        self.place = self.begin(Asked((name,), {name: forms_of(declared(body))}, **asked))
        context = Context("kept", name, 0, Outbox(lambda _: None, 0, with_ids=False))
        context.input = f"items->{name}"
        store = store_of(graph, graph.task(name), context, lambda: 0, ahead_ns=0)
        assert store is not None
        self.store: StateStore = store
        self.body = body()
        self.work = store.bind(self.body)
        kind = MarkKeeper if self.place.marks else StateKeeper
        self.keeper: Keeper = kind(self.place, store, name, 0, Division(1), storage=self.storage)
        self.keeper.restore(batch)

    def begin(self, wanted: Asked) -> Place:
        return begin(self.storage, str(self.root), self.batch - 1, wanted)

    def commit(self, *items: int) -> None:
        for item in items:
            self.work.process(item, None)
        self.write()
        self.batch += 1

    def write(self) -> None:
        self.keeper.commit(epoch_of(self.batch))
        (self.root / "commits").mkdir(exist_ok=True)
        (self.root / "commits" / str(self.batch)).touch()

    def kept(self) -> dict[tuple[str, Any], Any]:
        (kept,) = look(self.root).kept.values()
        return {(one.name, one.key): one.value for one in kept}


class RunningByMarks(Running):
    """The same where commits are epoch marks."""

    def begin(self, wanted: Asked) -> Place:
        self.log, place = begin_marks(self.storage, str(self.root), -1, {}, wanted)
        self.epochs = Epochs([self.name], self.log.entry)
        return place

    def write(self) -> None:
        epoch = epoch_of(self.batch)
        said = Marked(files=tuple(self.keeper.commit(epoch)), replicas=1)
        self.epochs.hear(Done(self.name, 0, 1, epoch, said=said))
        entry = self.epochs.entry(epoch)
        self.log.append(entry)
        self.epochs.committed(entry, batch_is_over=False)


Start = type[Running]


@pytest.fixture(params=[Running, RunningByMarks], ids=["boundaries", "marks"])
def running(request: pytest.FixtureRequest) -> Start:
    found: Start = request.param
    return found


def test_a_task_and_its_names_are_renamed_and_values_migrated(tmp_path: Path, running: Start) -> None:
    running(tmp_path, Visits, 0).commit(4, 4, 5)
    now = running(tmp_path, Renamed, 1, "counts", was={"counts": "visits"})
    now.commit(4)
    expected = {
        ("count", 4): 3,
        ("count", 5): 1,
        ("pages", 4): {4: 9},
        ("pages", 5): {5: 1},
        ("total", None): 3,
    }
    assert now.kept() == expected
    again = running(tmp_path, Renamed, 2, "counts", was={"counts": "visits"})  # said again, to no effect
    again.commit()
    assert again.kept() == expected
    assert {file.stored_as for file in again.place.files} == {None}


def test_a_rename_holds_before_anything_is_committed(tmp_path: Path, running: Start) -> None:
    running(tmp_path, Visits, 0).commit(4)
    for _ in range(2):
        now = running(tmp_path, Renamed, 1, "counts", was={"counts": "visits"})
        assert {file.stored_as for file in now.place.files} == {"visits"}
    now.commit()
    assert now.kept()["pages", 4] == {4: 1}


class Fewer:
    seen = state.value(0)

    def process(self, item: int, out: Any) -> None:
        self.seen += 1


def test_what_is_not_wanted_any_more_is_dropped_when_that_is_said(tmp_path: Path, running: Start) -> None:
    running(tmp_path, Visits, 0).commit(4)
    with pytest.raises(LogError, match=r'task "visits" kept pages \(list\), which it does not.*drop_state'):
        running(tmp_path, Fewer, 1)
    now = running(tmp_path, Fewer, 1, dropped=("visits.pages", "visits.total"))
    now.commit(4)
    assert now.kept() == {("seen", 4): 2}
    running(tmp_path, Fewer, 2).commit()
    other = running(tmp_path, Fewer, 3, "others", dropped=("visits",))
    other.commit(7)
    assert other.kept() == {("seen", 7): 1}


class AnotherKind(Visits):
    pages: Any = state.map_of(int, int)


class Newer(Visits):
    seen = state.value(0, version=3, migrate=lambda value, version: value)


def test_what_cannot_be_read_is_refused_in_words(tmp_path: Path, running: Start) -> None:
    running(tmp_path, Newer, 0).commit(4)
    with pytest.raises(LogError, match="kept seen in version 3, and declares version 1"):
        running(tmp_path, Visits, 1)
    with pytest.raises(LogError, match=r"kept pages as list in version 1, and declares map.*migrate="):
        running(tmp_path, AnotherKind, 1)
    with pytest.raises(LogError, match=r'say was="visits" at the task that it is now, or drop it with'):
        running(tmp_path, Visits, 1, "others")
    with pytest.raises(StateError, match="version=2 needs migrate="):
        state.value(0, version=2)
    flow = penstock.Flow("kept")
    with pytest.raises(FlowError, match=r"was='old' is for tasks that declare state"):
        flow.source(ITEMS, name="items").map(same, was="old")


class Point:
    """A class of values."""


def test_a_value_whose_class_is_gone_is_named(
    tmp_path: Path, running: Start, monkeypatch: pytest.MonkeyPatch
) -> None:
    now = running(tmp_path, Visits, 0)
    now.work.process(4, None)
    now.store._states["seen"].put(4, Point())
    now.commit()
    monkeypatch.delattr(f"{__name__}.Point")
    with pytest.raises(NotReadableError, match=r"the value of \('seen', 4\) in the commit cannot be read"):
        running(tmp_path, Visits, 1)
