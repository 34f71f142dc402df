"""State that is committed at boundaries: crashes, replays, other numbers of replicas, damage."""

import contextlib
import copy
import operator
import pickle
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import penstock
from penstock import state
from penstock.epochs.boundary import Place, begin, read_parts
from penstock.epochs.errors import LogError
from penstock.epochs.state import NotPicklableError
from penstock.epochs.storage import LocalStorage
from penstock.flow.graph import Graph
from penstock.wire.keys import key_group, owner
from penstock.worker.context import Context
from penstock.worker.outbox import Outbox
from penstock.worker.state_keeper import StateKeeper
from penstock.worker.state_store import StateStore, store_of


class Items:
    splits = ("all",)


ITEMS: Any = Items()


class Counts:
    seen = state.value(0)
    total = state.per_replica(0, merge=operator.add)
    silence = state.timer()

    def process(self, item: int, out: Any) -> None:
        self.seen += 1
        self.total += 1
        if item % 3:
            self.silence.set("1 s")
        if item % 7 == 0:
            del self.seen

    @silence.fires
    def end(self, out: Any) -> None:
        out((self.seen, "end"))


def same(item: int) -> int:
    return item


def graph_of() -> Graph:
    flow = penstock.Flow("kept")
    flow.source(ITEMS, name="items").by_key(same).task(Counts, name="counts").sink(print)
    return flow.graph()


GRAPH = graph_of()


class Replica:
    """What a worker process has of a replica, without the process."""

    def __init__(self, place: Place, number: int, replicas: int, batch: int) -> None:
        self.context = Context("kept", "counts", number, Outbox(lambda _: None, number, with_ids=False))
        self.context.input = "items->counts"
        store = store_of(GRAPH, GRAPH.task("counts"), self.context, lambda: 0, ahead_ns=0)
        assert store is not None
        self.store: StateStore = store
        self.body = Counts()
        self.work = store.bind(self.body)
        self.keeper = StateKeeper(place, store, "counts", number, replicas)
        self.keeper.restore(batch)


class World:
    """A flow on one checkpoint, with an oracle of what is committed."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.batch = 0
        self.committed: tuple[Counter[int], int] = (Counter(), 0)
        self.start(1)

    def start(self, replicas: int) -> None:
        self.place = begin(LocalStorage(self.root), str(self.root), self.batch - 1, ["counts"])
        self.replicas = [Replica(self.place, n, replicas, self.batch) for n in range(replicas)]
        self.seen, self.total = Counter(self.committed[0]), self.committed[1]
        self.check()

    def take(self, item: int) -> None:
        self.replicas[owner(key_group(item), len(self.replicas))].work.process(item, None)
        self.total += 1
        self.seen[item] += 1
        if item % 7 == 0:
            del self.seen[item]

    def end_batch(self, *, is_committed: bool) -> None:
        for replica in self.replicas:
            replica.keeper.commit(self.batch)
        if is_committed:
            self.batch += 1
            self.committed = (Counter(self.seen), self.total)

    def replace(self, number: int) -> None:
        """At the beginning of a batch: another process."""
        number %= len(self.replicas)
        self.replicas[number] = Replica(self.place, number, len(self.replicas), self.batch)

    def rescale(self, replicas: int) -> None:
        """At the beginning of a batch: some processes are kept, and some are new."""
        kept = self.replicas[:replicas]
        for number, replica in enumerate(self.replicas):
            replica.keeper = StateKeeper(
                self.place, replica.store, "counts", number, replicas, replica.keeper
            )
            replica.keeper.restore(self.batch)
        added = range(len(kept), replicas)
        self.replicas = [*kept, *(Replica(self.place, n, replicas, self.batch) for n in added)]

    def check(self) -> None:
        found: Counter[int] = Counter()
        for replica in self.replicas:
            for change in copy.copy(replica.store._state).everything():
                name, key = pickle.loads(change.key)
                if name == "seen" and change.value is not None:
                    found[key] = pickle.loads(change.value)
        assert found == self.seen
        assert sum(replica.store.of_replica("total") for replica in self.replicas) == self.total


steps = st.lists(
    st.one_of(
        st.lists(st.integers(0, 20), min_size=1, max_size=6).map(lambda items: ("take", items)),
        st.tuples(st.just("end"), st.just(0)),
        st.tuples(st.just("crash"), st.integers(1, 4)),
        st.tuples(st.just("crash at the end"), st.integers(1, 4)),
        st.tuples(st.just("replace"), st.integers(0, 3)),
        st.tuples(st.just("rescale"), st.integers(1, 4)),
    ),
    max_size=20,
)


@settings(max_examples=15)
@given(steps)
def test_a_start_finds_what_was_committed_last(
    tmp_path_factory: pytest.TempPathFactory, taken: list[tuple[str, Any]]
) -> None:
    world = World(tmp_path_factory.mktemp("checkpoint"))
    for step, value in [*taken, ("crash", 2)]:
        if step == "take":
            for item in value:
                world.take(item)
        elif step == "crash":
            with contextlib.suppress(LogError):
                begin(LocalStorage(world.root), str(world.root), world.batch - 1, [])
            world.start(value)
        elif step == "crash at the end":
            world.end_batch(is_committed=False)
            world.start(value)
        else:
            world.end_batch(is_committed=True)
            if step == "replace":
                world.replace(value)
            if step == "rescale":
                world.rescale(value)
            world.check()


def test_files_do_not_pile_up(tmp_path: Path) -> None:
    world = World(tmp_path)
    for number in range(100):
        world.take(number % 5)
        world.end_batch(is_committed=True)
    storage = LocalStorage(tmp_path)
    assert len(storage.names("state")) <= 2 * 16
    assert len(read_parts(storage)) == 2
    for replicas in (3, 1, 3, 1, 3, 1):
        world.rescale(replicas)
        world.take(2)
        world.end_batch(is_committed=True)
        world.end_batch(is_committed=True)
    assert len([name for name in storage.names("state") if "-00000-" in name]) <= 2
    world.start(3)
    assert len(storage.names("state")) <= 16
    assert len(storage.names("log")) == 1


def test_timers_are_part_of_it(tmp_path: Path) -> None:
    world = World(tmp_path)
    world.take(4)
    world.end_batch(is_committed=True)
    world.start(2)
    assert [replica.store.next_timer_ns for replica in world.replicas].count(10**9) == 1


def test_a_value_that_cannot_be_pickled_is_named(tmp_path: Path) -> None:
    world = World(tmp_path)
    world.take(4)
    world.replicas[0].body.seen = lambda: 0  # type: ignore[assignment]
    with pytest.raises(NotPicklableError, match=r"the value of \('seen', 4\), a function, cannot be pickled"):
        world.end_batch(is_committed=True)


def test_a_missing_or_damaged_file_is_named(tmp_path: Path) -> None:
    world = World(tmp_path)
    world.take(4)
    world.end_batch(is_committed=True)
    (file,) = (tmp_path / "state").iterdir()
    content = file.read_bytes()
    file.write_bytes(content[:-1])
    with pytest.raises(LogError, match=f"{file.name} is cut off"):
        world.start(1)
    file.unlink()
    with pytest.raises(LogError, match=f"{file.name} is missing"):
        world.start(1)


def test_a_replica_whose_part_is_missing_is_missed(tmp_path: Path) -> None:
    world = World(tmp_path)
    world.start(2)
    world.end_batch(is_committed=True)
    (tmp_path / "parts" / "000000000001-00001-counts").unlink()
    with pytest.raises(LogError, match='only 1 of 2 replicas of task "counts" committed state in epoch 1'):
        world.start(2)


def test_state_that_nobody_would_read_is_refused(tmp_path: Path) -> None:
    world = World(tmp_path)
    world.end_batch(is_committed=True)
    storage = LocalStorage(tmp_path)
    with pytest.raises(LogError, match='state of task "counts", which the flow does not have'):
        begin(storage, str(tmp_path), 0, ["others"])
    begin(storage, str(tmp_path), 0, ["counts", "others"])
    with pytest.raises(LogError, match="state is of epoch 1, but only 0 batches are committed"):
        begin(storage, str(tmp_path), -1, ["counts"])
