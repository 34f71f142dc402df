"""State that is committed by epoch marks, without processes: void epochs, crashes, other replicas."""

import errno
import os
from collections import Counter
from pathlib import Path
from typing import cast

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from penstock.epochs.boundary import begin
from penstock.epochs.commits import commits_of
from penstock.epochs.entries import StateFile
from penstock.epochs.errors import LogError, SupersededError
from penstock.epochs.looking import look
from penstock.epochs.marks import begin_marks, marked_entry
from penstock.epochs.migration import Asked
from penstock.epochs.remote_storage import RemoteStorage
from penstock.epochs.reports import Done, Epochs, Marked
from penstock.epochs.retention import collect
from penstock.epochs.storage import UNFINISHED, LocalStorage, Storage
from penstock.wire.keys import KEY_GROUPS, key_group, owner
from penstock.wire.orders import Position
from penstock.worker.state_keeper import _SLICES
from tests.epochs.crashing_disk import LOSSES, Crash, CrashingDisk
from tests.epochs.crashing_files import CUTS, CrashingFiles, PuttingFiles
from tests.epochs.test_boundary import ROOT, Quick, Replica, World

ASKED = Asked(("counts",))


class Flow:
    """One source, and counts in some replicas. `committed` are the items of the commits that were told, or
    that may have come to be as their driver ended.
    """

    def __init__(self, root: Path, storage: Storage | None = None) -> None:
        self.root = root
        self.storage = storage or LocalStorage(root, Quick())
        self.items: list[int] = []
        self.committed = {0}
        self.keep = 2
        self.start(1)

    def start(self, replicas: int) -> None:
        """Whatever was before: all processes are new."""
        self.log, self.place = begin_marks(self.storage, str(self.root), -1, {}, ASKED)
        entry = self.log.entry
        self.epochs, self.epoch = Epochs(["items", "counts"], entry), entry.epoch
        read = entry.positions.get("items", {}).get("all", Position(0, 0)).ordinal
        assert read in self.committed, "positions are those of the last commit"
        self.items, self.committed = self.items[:read], {read}
        self.divide(replicas)
        self.check()

    def divide(self, replicas: int) -> None:
        self.replicas = [Replica(self.storage, self.place, n, replicas, 0) for n in range(replicas)]

    def take(self, item: int) -> None:
        self.replicas[owner(key_group(item), len(self.replicas))].work.process(item, None)
        self.items.append(item)

    def mark(self, *, valid: bool, last: bool = False) -> None:
        self.report(valid=valid, last=last)
        if self.epochs.verdict(self.epoch):
            self.commit(last=last)
        else:
            self.epochs.void()

    def report(self, *, valid: bool, last: bool = False) -> None:
        self.epoch += 1
        for number, replica in enumerate(self.replicas):
            said = Marked(files=tuple(replica.keeper.commit(self.epoch)), replicas=len(self.replicas))
            self.epochs.hear(Done("counts", number, len(self.replicas), self.epoch, valid, last, said))
        at = Position(len(self.items), len(self.items))
        self.epochs.hear(Done("items", 0, 1, self.epoch, last=last, said=Marked(positions={"all": at})))

    def commit(self, *, last: bool = False) -> None:
        entry = self.epochs.entry(self.epoch)
        self.committed.add(len(self.items))
        self.log.append(entry)
        self.committed = {len(self.items)}
        self.epochs.committed(entry, batch_is_over=last)
        collect(self.log, keep=self.keep)

    def rescale(self, replicas: int) -> None:
        """At a boundary."""
        self.mark(valid=True, last=True)
        self.divide(replicas)

    def check(self) -> None:
        """What is in memory against a single process."""
        seen: Counter[int] = Counter()
        for item in self.items:
            seen[item] += 1
            if item % 7 == 0:
                del seen[item]
        found: Counter[int] = Counter()
        total = 0
        for replica in self.replicas:
            for key, count in replica.store._states["seen"].items():
                found[cast("int", key)] = count
            total += sum(value for _, value in replica.store._states["total"].items())
        assert found == +seen
        assert total == len(self.items)


STEP = st.one_of(
    st.tuples(st.just("take"), st.integers(0, 40)),
    st.tuples(st.just("mark"), st.booleans()),
    st.tuples(st.sampled_from(["start", "rescale"]), st.integers(1, 3)),
)


@settings(max_examples=40, deadline=None)
@given(st.lists(STEP, max_size=40))
def test_a_start_finds_what_the_newest_entry_has(
    tmp_path_factory: pytest.TempPathFactory, steps: list[tuple[str, int]]
) -> None:
    flow = Flow(tmp_path_factory.mktemp("marks"))
    for step, value in steps:
        if step == "take":
            flow.take(value)
        elif step == "mark":
            flow.mark(valid=bool(value))
        elif step == "start":
            flow.start(value)
        else:
            flow.rescale(value)
        flow.check()
    flow.start(2)


def test_a_base_comes_in_slices_and_old_files_go(tmp_path: Path) -> None:
    flow = Flow(tmp_path)
    written: list[list[StateFile]] = []
    for number in range(60):
        for item in range(number * 5, number * 5 + 25):
            flow.take(item % 300)
        before = {file.name for file in flow.log.entry.files}
        flow.mark(valid=number % 10 != 9)
        written.append([file for file in flow.epochs.newest.files if file.name not in before])
        assert len(flow.epochs.newest.files) < 60, "what has a newer base is not named any more"
    first, *others = (file for files in written for file in files if file.kind == "base")
    assert _groups(first) == KEY_GROUPS + 1
    assert len(others) > 2 * _SLICES
    assert all(_groups(file) <= KEY_GROUPS // _SLICES + 1 for file in others)
    flow.start(2)
    flow.start(1)


def _groups(file: StateFile) -> int:
    return sum(last - first + 1 for first, last in file.groups)


def lived(flow: Flow) -> None:
    for item in range(12):
        flow.take(item)
        if item % 3 == 2:
            flow.mark(valid=item != 5)
    flow.start(2)
    flow.take(3)
    flow.mark(valid=True)


def begun(flow: Flow, storage: Storage) -> Flow:
    """What it knew is there when it crashes in its first moments."""
    flow.__init__(ROOT, storage)  # type: ignore[misc]
    return flow


def crashed(storage: Storage) -> Flow:
    """One that ended somewhere in its life."""
    flow = Flow.__new__(Flow)
    with pytest.raises(Crash):
        lived(begun(flow, storage))
    return flow


def test_a_crash_at_any_file_operation_leaves_the_newest_commit_whole() -> None:
    counting = CrashingDisk()
    lived(Flow(ROOT, LocalStorage(ROOT, counting)))
    for at in range(1, counting.calls + 1):

        def crash(number: int, at: int = at) -> None:
            if number == at:
                raise Crash

        disk = CrashingDisk(crash)
        flow = crashed(LocalStorage(ROOT, disk))
        disk.crash(LOSSES[at % len(LOSSES)])
        flow.storage = LocalStorage(ROOT, disk)  # what a process remembers went with it
        flow.start(1)  # compares all of it with the oracle


@pytest.mark.parametrize("kind", [CrashingFiles, PuttingFiles])
def test_a_crash_at_any_operation_of_a_file_system_elsewhere_does_so_too(kind: type[CrashingFiles]) -> None:
    counting = kind()
    lived(Flow(ROOT, RemoteStorage(counting)))
    for at in range(1, counting.calls + 1):
        files = kind()
        files.crash_at, files.cut = at, CUTS[at % len(CUTS)]
        flow = crashed(RemoteStorage(files))
        files.crash_at = 0
        flow.start(1)


class FullDisk(Quick):
    """A disk with no room left once `is_full`."""

    is_full = False

    def write_new(self, path: Path, content: bytes) -> None:
        if self.is_full:
            super().write_new(path, content[: len(content) // 2])
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), str(path))
        super().write_new(path, content)


@pytest.mark.parametrize("at", ["state", "log"])
def test_a_disk_that_is_full_commits_nothing_and_is_gone_on_with_when_there_is_room(
    tmp_path: Path, at: str
) -> None:
    disk = FullDisk()
    flow = Flow(tmp_path, LocalStorage(tmp_path, disk))
    flow.take(1)
    flow.mark(valid=True)
    flow.take(2)
    before = {*flow.storage.names("log")}
    if at == "log":
        flow.report(valid=True)
    disk.is_full = True
    with pytest.raises(OSError, match="No space left on device"):
        flow.commit() if at == "log" else flow.mark(valid=True)
    assert {*flow.storage.names("log")} == before
    disk.is_full = False
    flow.start(2)
    flow.take(2)
    flow.mark(valid=True)
    flow.start(1)
    assert not [*tmp_path.rglob(f"{UNFINISHED}*")], "what was half written is gone"


def test_disk_use_is_flat(tmp_path: Path) -> None:
    flow = Flow(tmp_path)
    for number in range(200):
        flow.take(number % 5)
        flow.mark(valid=True)
    assert len(flow.storage.names("log")) == 2
    assert len(flow.storage.names("state")) < 70


def test_files_of_replicas_that_are_gone_go(tmp_path: Path) -> None:
    flow = Flow(tmp_path)
    flow.start(3)
    for replicas in (3, 1, 2):
        for item in range(30):
            flow.take(item)
        flow.rescale(replicas)
        flow.mark(valid=True)
        assert {file.replica for file in flow.log.entry.files} == {*range(replicas)}
    flow.start(1)


def test_another_driver_ends_the_first(tmp_path: Path) -> None:
    first, second = Flow(tmp_path), Flow(tmp_path)
    second.take(1)
    second.mark(valid=True)
    first.take(1)
    with pytest.raises(SupersededError, match="another driver's"):
        first.mark(valid=True)
    with pytest.raises(SupersededError, match="another driver's now"):
        first.divide(2)
    second.start(1)


def test_what_was_committed_at_boundaries_is_taken_over_and_there_is_no_way_back(tmp_path: Path) -> None:
    before = World(tmp_path / "epochs")
    for item in (4, 4, 5):
        before.take(item)
    before.end_batch(is_committed=True)
    before.take(9)
    before.end_batch(is_committed=False)
    (tmp_path / "commits").mkdir()
    (tmp_path / "commits" / "0").touch()
    assert marked_entry(before.storage) is None
    at = {"items": {"all": Position(3, 3)}}
    log, place = begin_marks(before.storage, place_root(tmp_path), 0, at, ASKED)
    assert log.entry.positions == at
    assert log.entry.epoch == 1
    assert place.marks
    assert not before.storage.names("parts")
    found = look(tmp_path)
    assert {kept.key: kept.value for kept in found.kept["counts"] if kept.name == "seen"} == {4: 2, 5: 1}
    assert found.after == "epoch 1"
    assert [(commit.number, commit.is_marked) for commit in commits_of(tmp_path)] == [(1, True)]


def place_root(checkpoint: Path) -> str:
    return str(checkpoint / "epochs")


def test_a_file_that_is_gone_is_named(tmp_path: Path) -> None:
    flow = Flow(tmp_path)
    flow.take(1)
    flow.mark(valid=True)
    (name,) = [file.name for file in flow.log.entry.files]
    (tmp_path / name).unlink()
    with pytest.raises(LogError, match=f"{name} is missing, though a commit names it"):
        flow.start(1)


def test_boundaries_begin_where_there_are_no_marks(tmp_path: Path) -> None:
    storage = LocalStorage(tmp_path, Quick())
    assert marked_entry(storage) is None
    begin(storage, str(tmp_path), -1, ASKED)
    assert marked_entry(storage) is None
