"""Property 7: the log survives a crash at every file operation, two drivers, and garbage collection."""

import contextlib
from collections.abc import Callable
from pathlib import Path

import msgspec
import pytest

from penstock.epochs import log as log_module
from penstock.epochs.entries import Entry, encode_entry
from penstock.epochs.errors import LogError, SupersededError
from penstock.epochs.log import Log, indices, name_of, newest_index, read_entry
from penstock.epochs.remote_storage import RemoteStorage
from penstock.epochs.retention import collect, missing
from penstock.epochs.state import KeyedState
from penstock.epochs.state_files import restore, write_changes
from penstock.epochs.storage import Disk, LocalStorage, Storage
from penstock.testing.storage import MemoryStorage
from tests.epochs.crashing_disk import LOSSES, Crash, CrashingDisk
from tests.epochs.crashing_files import CUTS, CrashingFiles, PuttingFiles

ROOT = Path("/checkpoint")


def commit(log: Log, name: str) -> None:
    """A commit whose entry remembers all commits before it, with a file of state."""
    entry = log.entry
    epoch = entry.epoch + 1
    state = KeyedState([0], lambda key: 0)
    state.put(epoch, name)
    file = write_changes(log.storage, "count", 0, entry.attempt, epoch, state.take_changes())
    assert file is not None
    history = [*entry.settings.get("history", []), name]
    log.append(
        Entry(
            kind="commit",
            attempt=entry.attempt,
            epoch=epoch,
            files=(*entry.files, file)[-3:],
            settings={"history": history},
        )
    )


def drive(storage: Storage, told: list[str], name: str, commits: int = 3) -> None:
    """A driver's life: what it was told to be committed."""
    go_on(Log.begin(storage), told, name, commits)


def go_on(log: Log, told: list[str], name: str, commits: int) -> None:
    for number in range(commits):
        commit(log, f"{name}{number}")
        told.append(f"{name}{number}")
        collect(log, keep=2)


def history(storage: Storage) -> list[str]:
    newest = newest_index(storage)
    assert newest is not None
    entry = read_entry(storage, newest)
    assert entry is not None
    assert missing(storage, entry) == []
    restore(storage, entry.files, "count", [0])
    found: list[str] = entry.settings.get("history", [])
    return found


def calls_of(action: Callable[[Storage], None]) -> int:
    disk = CrashingDisk()
    action(LocalStorage(ROOT, disk))
    return disk.calls


def check_after_a_crash(storage: Storage, told: list[str], where: object) -> None:
    """Another driver goes on, and nothing is lost that was told."""
    drive(storage, told, "b", 1)
    known = history(storage)
    # One more than was told may be there: its create was interrupted behind its link.
    attempted = [f"a{number}" for number in range(3)]
    assert known[:-1] in (told[:-1], attempted[: len(told)]), where


def crash_everywhere(make: Callable[[CrashingDisk], Disk]) -> None:
    """A crash before every call of a driver's life in turn, and with every loss; then another driver."""
    for at in range(1, calls_of(lambda storage: drive(storage, [], "a")) + 1):
        for loss in LOSSES:
            told: list[str] = []

            def crash(number: int, at: int = at) -> None:
                if number == at:
                    raise Crash

            disk = CrashingDisk(crash)
            with pytest.raises(Crash):
                drive(LocalStorage(ROOT, make(disk)), told, "a")
            disk.crash(loss)
            check_after_a_crash(LocalStorage(ROOT, disk), told, (at, loss))


def test_a_crash_at_every_call_loses_nothing_that_was_told() -> None:
    crash_everywhere(lambda disk: disk)


class WithoutContentSync(CrashingDisk):
    """Forgets to sync files."""

    def __init__(self, disk: CrashingDisk) -> None:
        self.__dict__ = disk.__dict__

    def sync(self, path: Path) -> None:
        if path not in self._names:
            super().sync(path)


class WithoutNameSync(WithoutContentSync):
    """Forgets to sync directories."""

    def sync(self, path: Path) -> None:
        if path in self._names:
            CrashingDisk.sync(self, path)


def test_it_breaks_without_the_sync_of_a_file() -> None:
    with pytest.raises(LogError, match=r"beginning is damaged|cut off"):
        crash_everywhere(WithoutContentSync)


def test_it_breaks_without_the_sync_of_the_directory() -> None:
    with pytest.raises(AssertionError):
        crash_everywhere(WithoutNameSync)


def elsewhere_crash_everywhere(made: Callable[[], CrashingFiles]) -> None:
    """The same on a file system elsewhere."""
    whole = made()
    drive(RemoteStorage(whole), [], "a")
    for at in range(1, whole.calls + 1):
        for cut in CUTS:
            told: list[str] = []
            files = made()
            files.crash_at, files.cut = at, cut
            with pytest.raises(Crash):
                drive(RemoteStorage(files), told, "a")
            files.crash_at = 0
            check_after_a_crash(RemoteStorage(files), told, (at, cut))


@pytest.mark.parametrize("made", [CrashingFiles, PuttingFiles])
def test_a_crash_at_every_call_of_a_file_system_elsewhere_loses_nothing_that_was_told(
    made: Callable[[], CrashingFiles],
) -> None:
    elsewhere_crash_everywhere(made)


class InPlace(CrashingFiles):
    """Writes where others read."""

    def create(self, name: str, content: bytes) -> bool:
        if self.read(name) is not None:
            return False
        self.write(name, content)
        return True


def test_it_breaks_if_files_are_written_in_place() -> None:
    with pytest.raises(LogError, match=r"cut off|beginning is damaged"):
        elsewhere_crash_everywhere(InPlace)


Disks = CrashingDisk | CrashingFiles


def local(disk: Disks) -> Storage:
    assert isinstance(disk, CrashingDisk)
    return LocalStorage(ROOT, disk)


def elsewhere(disk: Disks) -> Storage:
    assert isinstance(disk, CrashingFiles)
    return RemoteStorage(disk)


PLACES = [
    pytest.param(CrashingDisk, local, id="here"),
    pytest.param(CrashingFiles, elsewhere, id="elsewhere"),
    pytest.param(PuttingFiles, elsewhere, id="object store"),
]


def two_drivers(made: Callable[[], Disks], storage_on: Callable[[Disks], Storage], commits: int) -> None:
    """Before every call of a driver another begins and commits; the first goes on then, then the other."""
    counted = made()
    drive(storage_on(counted), [], "a")
    for at in range(1, counted.calls + 1):
        told: list[str] = []
        others: list[Log] = []
        disk = made()

        def other(
            number: int,
            at: int = at,
            disk: Disks = disk,
            told: list[str] = told,
            others: list[Log] = others,
        ) -> None:
            if number == at:
                disk.before = lambda number: None
                others.append(Log.begin(storage_on(disk)))
                go_on(others[0], told, "b", commits)

        disk.before = other
        storage = storage_on(disk)
        # Fenced off, or its unfinished file was swept:
        with contextlib.suppress(SupersededError, FileNotFoundError):
            drive(storage, told, "a")
        with contextlib.suppress(SupersededError):
            go_on(others[0], told, "c", 1)
        # An entry that was linked and not yet told may be there too: the other went on from it.
        assert [name for name in history(storage) if name in told] == told, at
        assert len(history(storage)) <= len(told) + 1


@pytest.mark.parametrize(("made", "storage_on"), PLACES)
@pytest.mark.parametrize("commits", [0, 1, 4])
def test_of_two_drivers_one_ends_and_nothing_told_is_lost(
    made: Callable[[], Disks], storage_on: Callable[[Disks], Storage], commits: int
) -> None:
    two_drivers(made, storage_on, commits)


class Overwriting(CrashingDisk):
    """A rename that replaces what is there, in place of an exclusive link."""

    def link(self, source: Path, target: Path) -> None:
        self._names.pop(target, None)
        super().link(source, target)


class OverwritingElsewhere(CrashingFiles):
    """A rename that does."""

    def takes(self, target: str) -> bool:
        return False


class WithoutCondition(PuttingFiles):
    """Object stores that do not know the condition."""

    def takes(self, target: str) -> bool:
        return False


@pytest.mark.parametrize(
    ("made", "storage_on"),
    [(Overwriting, local), (OverwritingElsewhere, elsewhere), (WithoutCondition, elsewhere)],
)
def test_two_drivers_break_it_if_creating_is_not_exclusive(
    made: Callable[[], Disks], storage_on: Callable[[Disks], Storage]
) -> None:
    with pytest.raises((AssertionError, LogError)):
        two_drivers(made, storage_on, 0)


def test_a_driver_that_slept_is_not_deceived_by_a_name_that_garbage_collection_freed() -> None:
    storage = MemoryStorage()
    sleeping = Log.begin(storage)
    told: list[str] = []
    drive(storage, told, "b", 5)
    assert storage.read(name_of(sleeping.index + 1)) is None
    with pytest.raises(SupersededError, match=r"log/0000000001 is another driver's"):
        commit(sleeping, "late")
    assert history(storage) == told


def test_it_would_be_without_the_second_look(monkeypatch: pytest.MonkeyPatch) -> None:
    storage = MemoryStorage()
    sleeping = Log.begin(storage)
    drive(storage, [], "b", 5)

    def created(storage: Storage, index: int, entry: Entry) -> bool:
        return storage.create(name_of(index), encode_entry(entry))

    monkeypatch.setattr(log_module, "_created", created)
    commit(sleeping, "late")
    assert "late" not in history(storage)


def test_a_driver_that_slept_collects_nothing_of_its_successor() -> None:
    storage = MemoryStorage()
    sleeping = Log.begin(storage)
    commit(sleeping, "a")
    drive(storage, [], "b", 2)
    assert collect(sleeping, keep=2) == []
    assert history(storage) == ["a", "b0", "b1"]


def test_files_of_the_epoch_to_come_and_bases_in_hand_stay() -> None:
    storage = MemoryStorage()
    log = Log.begin(storage)
    commit(log, "a")
    state = KeyedState([0], lambda key: 0)
    state.put("k", 1)
    void = write_changes(storage, "count", 0, 1, 2, state.take_changes())
    state.put("k", 2)
    base = write_changes(storage, "other", 0, 1, 1, state.take_changes())
    state.put("k", 3)
    past = write_changes(storage, "past", 0, 1, 1, state.take_changes())
    assert void is not None
    assert base is not None
    assert past is not None
    assert collect(log, keep=2, in_hand=[base.name]) == [past.name]
    assert collect(log, keep=2) == [base.name]
    assert void.name in storage.files


def test_an_attempt_is_in_the_log_before_anything_of_it() -> None:
    storage = MemoryStorage()
    log = Log.begin(storage)
    log.begin_again()
    assert log.entry.attempt == 2
    assert Log.begin(storage).entry.attempt == 3


def test_going_back_to_an_older_entry() -> None:
    storage = MemoryStorage()
    log = Log.begin(storage)
    for name in "abc":
        commit(log, name)
    back = Log.begin(storage, at=2)
    assert (back.entry.kind, back.entry.attempt, back.entry.epoch) == ("fence", 2, 3)
    assert back.entry.settings == {"history": ["a", "b"]}
    with pytest.raises(LogError, match="no entry 17; its newest is 4"):
        Log.begin(storage, at=17)


@pytest.mark.parametrize(
    ("damage", "words"),
    [
        (lambda data: data[:-1], r"log/0000000001 is cut off: \d+ bytes of \d+"),
        (lambda data: data[:-1] + b" ", "log/0000000001 is damaged: its checksum does not fit"),
        (lambda data: b"", "log/0000000001 is not a file of the kind entry"),
        (lambda data: data.replace(b"entry 1", b"entry 9", 1), "has version 9 of its format"),
    ],
)
def test_a_damaged_entry_is_named_and_never_skipped(damage: Callable[[bytes], bytes], words: str) -> None:
    storage = MemoryStorage()
    log = Log.begin(storage)
    commit(log, "a")
    name = name_of(log.index)
    storage.files[name] = damage(storage.files[name])
    with pytest.raises(LogError, match=words):
        Log.begin(storage)


def test_a_foreign_file_in_the_log_is_named() -> None:
    storage = MemoryStorage()
    storage.create("log/notes.txt", b"")
    with pytest.raises(LogError, match=r"log/notes.txt does not belong into a log"):
        Log.begin(storage)


def test_an_entry_of_another_attempt_is_refused() -> None:
    log = Log.begin(MemoryStorage())
    with pytest.raises(ValueError, match="cannot follow"):
        log.append(msgspec.structs.replace(log.entry, attempt=7))


def test_on_a_real_disk(tmp_path: Path) -> None:
    storage = LocalStorage(tmp_path)
    told: list[str] = []
    drive(storage, told, "a", 4)
    (tmp_path / "log" / ".new-1-1").write_bytes(b"half")
    drive(storage, told, "b", 1)
    assert history(storage) == told
    assert indices(storage) == [4, 5, 6], "two commits, and a fence between them"
    assert sorted(path.name for path in (tmp_path / "log").iterdir()) == [f"{4 + n:010d}" for n in range(3)]
    assert (tmp_path / "log" / "0000000006").stat().st_mode & 0o777 == 0o600
