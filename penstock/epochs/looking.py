"""What a checkpoint has of the state of tasks, to look at; nothing is changed by that."""

import pickle
from collections.abc import Hashable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from penstock.epochs.batches import committed_batches
from penstock.epochs.boundary import IN_CHECKPOINT, epoch_of, state_at
from penstock.epochs.entries import Entry
from penstock.epochs.errors import LogError
from penstock.epochs.marks import marked_entry
from penstock.epochs.state_files import restored_changes
from penstock.epochs.storage import LocalStorage, Storage
from penstock.wire.keys import KEY_GROUPS

_TRIES: Final = 5


@dataclass(frozen=True, slots=True)
class Kept:
    """One cell: of a key, or (`key` is None, `replica` is not) of a replica."""

    task: str
    name: str
    key: Hashable
    replica: int | None
    value: Any


@dataclass(frozen=True, slots=True)
class Looked:
    """The state after a batch, by task; `epoch` is that of a commit by an epoch mark."""

    batch: int
    replicas: dict[str, int]
    bytes: dict[str, int]
    kept: dict[str, list[Kept]]
    epoch: int | None = None

    @property
    def after(self) -> str:
        """What was committed last, in words."""
        return f"batch {self.batch}" if self.epoch is None else f"epoch {self.epoch}"


def look(checkpoint: Path) -> Looked:
    """What was committed last in a checkpoint on this machine."""
    return look_at(LocalStorage(checkpoint / IN_CHECKPOINT), committed_batches(checkpoint), str(checkpoint))


def look_at(storage: Storage, batches: Sequence[int], checkpoint: str) -> Looked:
    """What was committed last; `batches` are those that Spark has committed.

    A flow that runs may remove a file that is being read: then once more.
    """
    is_marked = marked_entry(storage) is not None
    if not (batches or is_marked) or not storage.names("log"):
        raise LogError(
            f"{checkpoint} has no committed state: no flow with declared state has committed there"
        )
    for tried in range(1, _TRIES + 1):
        try:
            marked = marked_entry(storage)
            entry = state_at(storage, epoch_of(max(batches))).entry if marked is None else marked
            kept = {task: [*_kept(storage, entry, task)] for task in entry.pools}
            break
        except LogError:
            if tried == _TRIES:
                raise
    sizes = {task: sum(file.size for file in entry.files if file.task == task) for task in entry.pools}
    return Looked(entry.epoch - 1, entry.pools, sizes, kept, entry.epoch if is_marked else None)


def _kept(storage: Storage, entry: Entry, task: str) -> Iterator[Kept]:
    latest = {}
    for change in restored_changes(storage, entry.files, task, range(-entry.pools[task], KEY_GROUPS)):
        latest[change.name, change.group, change.key] = change
    for change in latest.values():
        if change.value is not None:
            replica = -1 - change.group if change.group < 0 else None
            yield Kept(task, change.name or "", pickle.loads(change.key), replica, _value(change.value))


def _value(pickled: bytes) -> Any:
    try:
        return pickle.loads(pickled)
    except Exception as problem:  # noqa: BLE001 - classes of a flow may not be here, or may raise anything
        return Unread(f"{len(pickled)} bytes that cannot be read here: {problem}")


class Unread(str):
    """In place of a value whose class is not known here."""

    __slots__ = ()

    def __repr__(self) -> str:
        return f"<{self}>"
