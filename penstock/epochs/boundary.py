"""State that is committed at boundaries of batches, where Spark's own commit of a batch says that it holds.

At the end of a batch every replica of a task with state writes a file of what has changed, and a *part*: it
names all files that its state is made of. Only then Spark commits the batch. Batch b is epoch b + 1. A start
puts the parts of the last committed batch together into an entry of the log; parts of later batches go, as
those batches come again.
"""

from collections.abc import Iterable, Sequence

import msgspec

from penstock.epochs.entries import Entry, StateFile
from penstock.epochs.errors import LogError
from penstock.epochs.log import Log, newest_index, read_entry
from penstock.epochs.retention import collect, missing
from penstock.epochs.sealed import seal, unseal
from penstock.epochs.state_files import without_superseded
from penstock.epochs.storage import Storage

IN_CHECKPOINT = "epochs"
"""The directory of a checkpoint that has the state of tasks."""

PARTS = "parts"
PART_VERSION = 1
_WORKERS_OF = "workers_of_attempt"


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


def epoch_of(batch: int) -> int:
    """The epoch that ends with a batch; 0 is before the first."""
    return batch + 1


def write_part(storage: Storage, part: Part) -> None:
    """Durable when this returns."""
    if not storage.create(part.name, seal("part", PART_VERSION, msgspec.json.encode(part))):
        raise LogError(f"{part.name} is there already: two processes write as one")


def read_parts(storage: Storage) -> list[Part]:
    """All that are there, in the order of epochs."""
    found = []
    for name in sorted(storage.names(PARTS)):
        data = storage.read(name)
        if data is None:
            continue  # its writer has a newer one
        try:
            found.append(msgspec.json.decode(unseal("part", PART_VERSION, data, name), type=Part))
        except msgspec.DecodeError as problem:
            raise LogError(f"{name} is not a part of a commit: {problem}") from None
    return found


def newest_parts(parts: Iterable[Part], attempt: int, epoch: int) -> dict[tuple[str, int], Part]:
    """Of each replica, in that attempt and not after that epoch."""
    return {(p.task, p.replica): p for p in parts if p.attempt == attempt and p.epoch <= epoch}


def begin(storage: Storage, root: str, batch: int, tasks: Sequence[str]) -> Place:
    """Another attempt, from the last batch that was committed; whoever was there before is fenced off.

    `tasks` are those of the flow that have state: what others had would be lost, so that is refused.
    """
    log = Log.begin(storage)
    entry, parts = _put_together(storage, log.entry, batch)
    _refuse_unknown(entry, tasks)
    if gone := missing(storage, entry):
        raise LogError(f"{gone[0]} is missing, though a commit names it; restore it")
    log.append(entry)
    for part in parts:
        storage.delete(part.name)
    collect(log, keep=1)
    return Place(root, entry.attempt, entry.files, entry.pools)


def committed_entry(storage: Storage, batch: int) -> Entry:
    """What a start after that batch would find; nothing is changed."""
    newest = newest_index(storage)
    before = None if newest is None else read_entry(storage, newest)
    if before is None:
        raise LogError("there is no log, or it is being renewed")
    return _put_together(storage, before, batch)[0]


def _put_together(storage: Storage, before: Entry, batch: int) -> tuple[Entry, list[Part]]:
    """The entry of the state after a batch, and all parts that are there."""
    epoch, parts = epoch_of(batch), read_parts(storage)
    if epoch < before.epoch:
        raise LogError(f"state is of epoch {before.epoch}, but only {epoch} batches are committed")
    # An attempt that was refused or crashed before its entry had no workers, and leaves what it found.
    last = newest_parts(parts, before.settings.get(_WORKERS_OF, 0), epoch)
    files = without_superseded([*before.files, *(file for part in last.values() for file in part.files)])
    entry = Entry(
        kind="commit",
        attempt=before.attempt,
        epoch=epoch,
        files=files,
        pools=_pools(before, last.values()),
        settings={_WORKERS_OF: before.attempt},
    )
    return entry, parts


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


def _refuse_unknown(entry: Entry, tasks: Sequence[str]) -> None:
    for file in entry.files:
        if file.task not in tasks:
            raise LogError(
                f'it has state of task "{file.task}", which the flow does not have or which declares none'
                f" any more (with state it has {', '.join(tasks) or 'none'}): give it back its name"
            )
