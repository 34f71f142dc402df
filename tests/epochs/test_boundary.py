"""State that is committed at boundaries: crashes, replays, other numbers of replicas, damage."""

import contextlib
import operator
from collections import Counter
from pathlib import Path
from typing import Any, cast

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import penstock
from penstock import state
from penstock.epochs.boundary import KEEP, Place, begin, epoch_of, read_parts, state_at
from penstock.epochs.errors import LogError
from penstock.epochs.migration import Asked
from penstock.epochs.portions import NotPicklableError
from penstock.epochs.remote_storage import RemoteStorage
from penstock.epochs.storage import LocalStorage, Storage, SystemDisk
from penstock.flow.graph import Graph
from penstock.wire.divisions import Division
from penstock.wire.keys import key_group, owner
from penstock.worker import state_keeper
from penstock.worker.context import Context
from penstock.worker.outbox import Outbox
from penstock.worker.state_keeper import Keeper, MarkKeeper, StateKeeper
from penstock.worker.state_store import StateStore, store_of
from tests.epochs.crashing_disk import LOSSES, Crash, CrashingDisk
from tests.epochs.crashing_files import CUTS, CrashingFiles


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


class Quick(SystemDisk):
    """Does not wait for the disk: only a host that crashes would tell."""

    def sync(self, path: Path) -> None:
        pass


class Replica:
    """What a worker process has of a replica, without the process."""

    def __init__(self, storage: Storage, place: Place, number: int, replicas: int, batch: int) -> None:
        self.context = Context("kept", "counts", number, Outbox(lambda _: None, number, with_ids=False))
        self.context.input = "items->counts"
        store = store_of(GRAPH, GRAPH.task("counts"), self.context, lambda: 0, ahead_ns=0)
        assert store is not None
        self.store: StateStore = store
        self.body = Counts()
        self.work = store.bind(self.body)
        kind = MarkKeeper if place.marks else StateKeeper
        self.keeper: Keeper = kind(place, store, "counts", number, Division(replicas), storage=storage)
        self.keeper.restore(batch)


class World:
    """A flow on one checkpoint, with an oracle of what is committed."""

    def __init__(self, root: Path, storage: Storage | None = None) -> None:
        self.root = root
        self.storage = storage or LocalStorage(root, Quick())
        self.batch = 0
        self.committed: tuple[Counter[int], int] = (Counter(), 0)
        self.start(1)

    def start(self, replicas: int) -> None:
        self.place = begin(self.storage, str(self.root), self.batch - 1, Asked(("counts",)))
        self.replicas = [Replica(self.storage, self.place, n, replicas, self.batch) for n in range(replicas)]
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
            replica.keeper.commit(epoch_of(self.batch))
        if is_committed:
            self.batch += 1
            self.committed = (Counter(self.seen), self.total)

    def replace(self, number: int) -> None:
        """At the beginning of a batch: another process."""
        number %= len(self.replicas)
        self.replicas[number] = Replica(self.storage, self.place, number, len(self.replicas), self.batch)

    def rescale(self, replicas: int) -> None:
        """At the beginning of a batch: some processes are kept, and some are new."""
        kept = self.replicas[:replicas]
        for number, replica in enumerate(self.replicas):
            assert isinstance(replica.keeper, StateKeeper)
            replica.keeper = StateKeeper(
                self.place, replica.store, "counts", number, Division(replicas), replica.keeper, self.storage
            )
            replica.keeper.restore(self.batch)
        added = range(len(kept), replicas)
        self.replicas = [*kept, *(Replica(self.storage, self.place, n, replicas, self.batch) for n in added)]

    def check(self) -> None:
        found: Counter[int] = Counter()
        for replica in self.replicas:
            for key, count in replica.store._states["seen"].items():
                found[cast("int", key)] = count
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
                begin(LocalStorage(world.root), str(world.root), world.batch - 1, Asked(()))
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
    for number in range(60):
        world.take(number % 5)
        world.end_batch(is_committed=True)
    storage = LocalStorage(tmp_path)
    assert len(storage.names("state")) <= 2 * 16
    assert len(read_parts(storage)) == 1 + KEEP
    for replicas in (3, 1, 3, 1):
        world.rescale(replicas)
        world.take(2)
        for _ in range(3 + KEEP):
            world.end_batch(is_committed=True)
    assert {part.replica for part in read_parts(storage)} == {0}
    assert all("-00000-" in name for name in storage.names("state"))
    for _ in range(5):
        world.start(3)
    assert len(storage.names("state")) <= 16
    assert len(storage.names("log")) <= 2


@pytest.mark.parametrize("marks", [False, True])
def test_a_worker_on_a_machine_without_the_checkpoint_says_so(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, marks: bool
) -> None:
    monkeypatch.setattr(state_keeper, "_SEEN_WITHIN_S", 0.0)
    place = msgspec.structs.replace(World(tmp_path / "driver").place, marks=marks)
    with pytest.raises(LogError, match=r"is not what the driver has there; give a checkpoint that all"):
        Replica(LocalStorage(tmp_path / "worker"), place, 0, 1, 0)


def test_a_worker_that_sees_names_late_takes_no_older_state(tmp_path: Path) -> None:
    world = World(tmp_path)
    world.take(4)
    world.end_batch(is_committed=True)
    world.end_batch(is_committed=True)
    late = tmp_path / "parts" / "000000000002-00000-counts"
    late.rename(tmp_path / "late")
    with pytest.raises(LogError, match='no part of task "counts" of epoch 2 is seen in'):
        world.replace(0)
    (tmp_path / "late").rename(late)
    world.replace(0)
    world.check()


def test_timers_are_part_of_it(tmp_path: Path) -> None:
    world = World(tmp_path)
    world.take(4)
    world.end_batch(is_committed=True)
    world.start(2)
    assert [replica.store.next_timer_ns for replica in world.replicas].count(10**9) == 1


def test_a_value_that_cannot_be_pickled_is_named(tmp_path: Path) -> None:
    world = World(tmp_path)
    world.take(4)
    world.replicas[0].store._states["seen"].put(4, lambda: 0)
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
        begin(storage, str(tmp_path), 0, Asked(("others",)))
    begin(storage, str(tmp_path), 0, Asked(("counts", "others")))
    begin(storage, str(tmp_path), 0, Asked(("counts",)), keep=1)
    with pytest.raises(LogError, match="state is kept from epoch 1 on, but only 0 batches are committed"):
        begin(storage, str(tmp_path), -1, Asked(("counts",)))


def test_older_commits_are_kept_over_starts_and_can_be_begun_with(tmp_path: Path) -> None:
    world, storage = World(tmp_path), LocalStorage(tmp_path)
    seen = [world.committed]
    for number, replicas in enumerate((1, 2, 2, 3)):
        world.start(replicas)
        for item in range(number, 10):
            world.take(item)
        world.end_batch(is_committed=True)
        seen.append(world.committed)
    with pytest.raises(LogError, match="state is kept from epoch"):
        state_at(storage, 0)
    for epoch in (3, 2):  # two and three commits back, then on from there
        world.batch, world.committed = epoch, seen[epoch]
        world.start(2)
        world.take(5)
        world.end_batch(is_committed=True)
        world.start(1)


def lived(world: World) -> None:
    """Commits of bases and of changes, one that Spark does not confirm, starts with other replicas."""
    for item in (1, 14):
        world.take(item)
        world.end_batch(is_committed=True)
    world.take(3)
    world.end_batch(is_committed=False)
    world.start(2)
    world.take(4)
    world.end_batch(is_committed=True)


ROOT = Path("/c/epochs")


def begun(world: World, storage: Storage) -> World:
    """Made here, so that there is something to look at if it crashes in the first start."""
    world.__init__(ROOT, storage)  # type: ignore[misc]
    return world


def test_a_crash_at_any_file_operation_leaves_the_newest_commit_whole() -> None:
    counting = CrashingDisk()
    lived(World(ROOT, LocalStorage(ROOT, counting)))
    for at in range(1, counting.calls + 1):

        def crash(number: int, at: int = at) -> None:
            if number == at:
                raise Crash

        disk = CrashingDisk(crash)
        world = World.__new__(World)
        with pytest.raises(Crash):
            lived(begun(world, LocalStorage(ROOT, disk)))
        disk.crash(LOSSES[at % len(LOSSES)])
        world.storage = LocalStorage(world.root, disk)  # what a process remembers went with it
        world.start(1)  # compares all of it with the oracle


def test_a_crash_at_any_operation_of_a_file_system_elsewhere_does_so_too() -> None:
    counting = CrashingFiles()
    lived(World(ROOT, RemoteStorage(counting)))
    for at in range(1, counting.calls + 1):
        files = CrashingFiles()
        files.crash_at, files.cut = at, CUTS[at % len(CUTS)]
        world = World.__new__(World)
        with pytest.raises(Crash):
            lived(begun(world, RemoteStorage(files)))
        files.crash_at = 0
        world.start(1)


def test_parts_that_are_gone_are_no_older_state(tmp_path: Path) -> None:
    world = World(tmp_path)
    world.take(4)
    world.end_batch(is_committed=True)
    (tmp_path / "parts" / "000000000001-00000-counts").unlink()
    with pytest.raises(LogError, match="no state of epoch 1, after batch 0, is kept in parts"):
        world.start(1)
