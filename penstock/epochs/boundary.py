"""State that is committed at boundaries of batches, where Spark's own commit of a batch says that it holds.

At the end of a batch every replica of a task with state writes a file of what has changed, and a *part*: it
names all files that its state is made of. Only then Spark commits the batch. Batch b is epoch b + 1. A start
puts the parts of the last committed batch together into an entry of the log; parts of later batches go, as
those batches come again. Parts of the last few commits stay, so that a flow can go back to one of them: the
state of epoch e is that of the newest entry which is not later than e, with the parts of its attempt up to e.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import msgspec

from penstock.epochs.entries import Entry, StateFile
from penstock.epochs.errors import LogError
from penstock.epochs.killers import Caution
from penstock.epochs.log import Log, indices, newest_index, read_entry
from penstock.epochs.migration import Asked, adopted
from penstock.epochs.retention import STATE_DIRECTORY, missing, retain
from penstock.epochs.sealed import seal, unseal
from penstock.epochs.state_files import without_superseded
from penstock.epochs.storage import Storage

IN_CHECKPOINT = "epochs"
"""The directory of a checkpoint that has the state of tasks."""

PARTS = "parts"
PREPARED = "prepared"
"""Where sinks put what they prepare, if they have no better place."""
PART_VERSION = 1
_TASKS: Final = "tasks"
KEEP: Final = 3
"""How many commits are kept if nothing else is said."""


class Part(msgspec.Struct, frozen=True, kw_only=True):
    """What the state of one replica is made of at the end of an epoch."""

    attempt: int
    epoch: int
    task: str
    replica: int
    replicas: int
    files: tuple[StateFile, ...]

    @property
    def name(self) -> str:
        """Where it is."""
        return f"{PARTS}/{self.epoch:012d}-{self.replica:05d}-{self.task}"


class Place(msgspec.Struct, frozen=True):
    """What a worker must know: where the files are, and what was committed when its attempt began."""

    root: str
    attempt: int
    files: tuple[StateFile, ...]
    replicas: dict[str, int]
    """Of each task, when its files were written."""
    keep: int = KEEP
    """How many commits are kept."""
    caution: Caution | None = None
    """After deaths of workers."""
    dropped: tuple[str, ...] = ()
    """Tasks, and names as "TASK.NAME", whose values are not wanted any more."""
    marks: bool = False
    """Whether commits are epoch marks: then the newest entry of the log says which files there are."""
    checkpoint: str = ""
    """What tells it from other checkpoints, where commits are epoch marks."""
    epoch: int = 0
    """The last that was committed when its attempt began."""
    is_remote: bool = False
    """Whether only the executors can reach the files; `root` is an address then."""
    through: str = ""
    """The socket by which a worker has its executor reach them."""
    beside: str = ""
    """A directory of the executor, where workers show what they are at."""

    @property
    def attempt_name(self) -> str | None:
        """What sinks call the attempt: no two checkpoints have one in common. None without epoch marks."""
        return attempt_name(self.checkpoint, self.attempt) if self.marks else None

    @property
    def prepared_in(self) -> Path | None:
        """Where sinks may put what they prepare. None without epoch marks, or where it is no path."""
        return Path(self.root) / PREPARED if self.marks and not self.is_remote else None

    def prepared_by(self, task: str, replica: int) -> Path | None:
        """The same for a worker; where that is no path it has a directory of its own beside its executor."""
        if self.marks and self.is_remote:
            return Path(self.beside) / PREPARED / f"{task}-{replica}"
        return self.prepared_in


@dataclass(frozen=True, slots=True)
class StateAt:
    """The state of an epoch: the entry that a start would make of it, and what that is made of."""

    entry: Entry
    origin: int | None
    """The index of the entry with which its attempt began; None before the first."""
    parts: tuple[str, ...]


def attempt_name(checkpoint: str, attempt: int) -> str:
    """Of a checkpoint that has that name."""
    return f"{checkpoint}-{attempt:08d}"


def epoch_of(batch: int) -> int:
    """The epoch that ends with a batch; 0 is before the first."""
    return batch + 1


def write_part(storage: Storage, part: Part) -> None:
    """Durable when this returns."""
    if not storage.create(part.name, seal("part", PART_VERSION, msgspec.json.encode(part))):
        raise LogError(f"{part.name} is there already: two processes write as one")


def read_part(storage: Storage, name: str) -> Part | None:
    """A part; None if it is not there, a `LogError` if it is and cannot be used."""
    data = storage.read(name)
    if data is None:
        return None
    try:
        return msgspec.json.decode(unseal("part", PART_VERSION, data, name), type=Part)
    except msgspec.DecodeError as problem:
        raise LogError(f"{name} is not a part of a commit: {problem}") from None


def read_parts(storage: Storage) -> list[Part]:
    """All that are there, in the order of epochs; one that its writer removes meanwhile is left out."""
    found = (read_part(storage, name) for name in sorted(storage.names(PARTS)))
    return [part for part in found if part is not None]


def newest_parts(parts: Iterable[Part], attempt: int, epoch: int) -> dict[tuple[str, int], Part]:
    """Of each replica, in that attempt and not after that epoch."""
    return {(p.task, p.replica): p for p in parts if p.attempt == attempt and p.epoch <= epoch}


def begin(storage: Storage, root: str, batch: int, asked: Asked, keep: int = KEEP) -> Place:
    """Another attempt, from the last batch that was committed; whoever was there before is fenced off.

    State that the flow does not ask for would be lost, so that is refused.
    """
    log = Log.begin(storage)
    epoch = epoch_of(batch)
    found = state_at(storage, epoch)
    entry = msgspec.structs.replace(found.entry, attempt=log.entry.attempt, settings={_TASKS: [*asked.tasks]})
    entry = adopted(entry, asked)
    if gone := missing(storage, entry):
        raise LogError(f"{gone[0]} is missing, though a commit names it; restore it")
    log.append(entry, goes_back=True)
    for name in later_parts(storage, epoch):
        storage.delete(name)
    for directory in (PARTS, STATE_DIRECTORY):
        storage.sweep(directory)
    if newest_index(storage) == log.index:  # else another driver has gone on, and collects by itself
        keep_commits(storage, range(epoch - keep + 1, epoch + 1))
    return Place(root, entry.attempt, entry.files, entry.pools, keep, dropped=asked.dropped, epoch=epoch)


def later_parts(storage: Storage, epoch: int) -> list[str]:
    """Those that batches wrote which come again."""
    return [name for name in storage.names(PARTS) if epoch_of_part(name) > epoch]


def epoch_of_part(name: str) -> int:
    """The epoch in the name of a part; a `LogError` if it is no such name."""
    number = name.removeprefix(f"{PARTS}/").partition("-")[0]
    if not number.isdecimal():
        raise LogError(f"{name} does not belong among the parts of commits; remove it")
    return int(number)


def keep_commits(storage: Storage, epochs: Iterable[int], *, is_still: bool = False) -> list[str]:
    """Delete what the commits of these epochs do not need, as far as they are there; what was deleted.

    `is_still`: no flow runs here.
    """
    found = []
    for epoch in epochs:
        try:
            found.append(state_at(storage, epoch))
        except LogError:
            continue  # it went long ago
    if not found:
        return []
    parts = {name for state in found for name in state.parts}
    gone = [name for name in storage.names(PARTS) if name not in parts]
    for name in gone:
        storage.delete(name)
    entries = [state.entry for state in found]
    origins = {state.origin for state in found if state.origin is not None}
    return gone + retain(storage, origins, entries, is_still=is_still)


def sweep_task(storage: Storage, task: str, attempt: int, oldest: int) -> None:
    """Delete what commits before that epoch had of a task, also of replicas that are no more."""
    parts = [part for part in read_parts(storage) if part.task == task and part.attempt == attempt]
    needed = {file.name for part in parts if part.epoch >= oldest for file in part.files}
    old = [part for part in parts if part.epoch < oldest]
    for name in (file.name for part in old for file in part.files):
        if name not in needed:
            storage.delete(name)
    for part in old:
        storage.delete(part.name)


def state_at(storage: Storage, epoch: int) -> StateAt:
    """The state after an epoch; nothing is changed. A `LogError` if it is not kept, or not whole."""
    origin, before = _origin(storage, epoch)
    last = newest_parts(read_parts(storage), before.attempt, epoch)
    tasks = before.settings.get(_TASKS, before.pools)
    if before.epoch < epoch and tasks and all(part.epoch < epoch for part in last.values()):
        raise LogError(f"no state of epoch {epoch}, after batch {epoch - 1}, is kept in {PARTS}")
    files = without_superseded([*before.files, *(file for part in last.values() for file in part.files)])
    entry = Entry(
        kind="commit",
        attempt=before.attempt,
        epoch=epoch,
        files=files,
        pools=_pools(before, last.values()),
    )
    return StateAt(entry, origin, tuple(part.name for part in last.values()))


def _origin(storage: Storage, epoch: int) -> tuple[int | None, Entry]:
    """The entry from which an epoch went on. A fence is none: its attempt has not begun, or was refused."""
    known = indices(storage)
    commits = [(index, entry) for index in reversed(known) if (entry := _commit(storage, index)) is not None]
    for index, entry in commits:
        if entry.epoch <= epoch:
            return index, entry
    if commits:
        oldest = commits[-1][1].epoch
        raise LogError(f"state is kept from epoch {oldest} on, but only {epoch} batches are committed")
    return None, Entry(kind="commit", attempt=0, epoch=0)


def _commit(storage: Storage, index: int) -> Entry | None:
    entry = read_entry(storage, index)
    return entry if entry is not None and entry.kind == "commit" else None


def replicas_of(parts: Iterable[Part]) -> int:
    """Among how many replicas the keys of a task were divided last; all of them must have committed."""
    known = [*parts]
    newest = max(known, key=lambda part: part.epoch)
    there = sum(part.epoch == newest.epoch for part in known)
    if there < newest.replicas:
        raise LogError(
            f'only {there} of {newest.replicas} replicas of task "{newest.task}" committed state in epoch'
            f" {newest.epoch}; restore the missing files in {PARTS}"
        )
    return newest.replicas


def _pools(before: Entry, parts: Iterable[Part]) -> dict[str, int]:
    """The replicas of each task."""
    written: dict[str, list[Part]] = {}
    for part in parts:
        written.setdefault(part.task, []).append(part)
    return before.pools | {task: replicas_of(there) for task, there in written.items()}
