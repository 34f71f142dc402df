"""Writes the state of a replica for a commit, and reads it in a new process.

The first file of a process is a base, with all it knows; after it come files of what has changed, until
another base is due. Where commits are boundaries (epochs/boundary.py), each writes down which files its state
is made of, and removes what no commit needs that is kept; where they are epoch marks, the driver does both.
"""

from abc import ABC, abstractmethod
from pathlib import Path
from typing import TYPE_CHECKING, Final

from penstock.epochs.boundary import (
    Part,
    Place,
    epoch_of,
    newest_parts,
    read_parts,
    replicas_of,
    sweep_task,
    write_part,
)
from penstock.epochs.errors import SupersededError
from penstock.epochs.log import newest_entry
from penstock.epochs.migration import Adapt, adapter, written_forms
from penstock.epochs.state_files import restore, without_superseded, write_base, write_changes
from penstock.epochs.storage import LocalStorage, Storage
from penstock.epochs.tables import even_table
from penstock.worker.state_store import StateStore

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from penstock.epochs.entries import Entry, StateFile

_FILES_PER_BASE: Final = 16
_MOST_FILES: Final = 64


class Keeper(ABC):
    """Of one replica of a task; `before` is what it had among another number of replicas."""

    def __init__(
        self,
        place: Place,
        store: StateStore,
        task: str,
        replica: int,
        replicas: int,
        before: "Keeper | None" = None,
        storage: Storage | None = None,
    ) -> None:
        self._place = place
        self._store = store
        self._task = task
        self._replica = replica
        self._replicas = replicas
        self._storage: Storage = storage or LocalStorage(Path(place.root))
        self._groups = even_table(1, replicas).groups_of(replica)
        self._cells = written_forms(store.parts)
        self._needs_base = True
        self._follow(before)

    @property
    def replicas(self) -> int:
        """Among how many the keys are divided."""
        return self._replicas

    @abstractmethod
    def _follow(self, before: "Keeper | None") -> None:
        """Take over what is known of files."""

    @abstractmethod
    def restore(self, batch: int, since: int = 0) -> None:
        """The state at the beginning of a batch, whoever wrote it, and among however many replicas.

        It is known from epoch `since` on.
        """

    @abstractmethod
    def commit(self, epoch: int) -> "list[StateFile]":
        """Write what has changed up to the end of an epoch; the files that are new."""

    def _restore(self, files: "Sequence[StateFile]", before: int) -> None:
        """From the files of all, when there were `before` replicas."""
        store, storage, task = self._store, self._storage, self._task
        store.apply(restore(storage, files, task, self._groups, self._adapter))
        if before == self._replicas:
            store.apply(restore(storage, files, task, [-1 - self._replica], self._adapter))
        else:
            of_all = restore(storage, files, task, range(-before, 0), self._adapter)
            store.apply_of_replicas(of_all, before, self._replicas)

    def _adapter(self, file: "StateFile") -> Adapt | None:
        return adapter(file, self._store.parts, self._place.dropped)

    def _write(self, epoch: int) -> "StateFile | None":
        """What has changed, or all if a base is due; None if nothing has."""
        writer = (self._storage, self._task, self._replica, self._place.attempt, epoch)
        if not self._needs_base:
            return write_changes(*writer, self._store.take_changes(), self._cells)
        self._needs_base = False
        groups = {-1 - self._replica, *self._groups}
        return write_base(*writer, self._store.everything(), groups, self._cells)

    def _drop(self) -> bool:
        """Forget what is in memory; whether the replica is one of those that have state now."""
        self._store.clear()
        self._store.own_only(self._groups)
        return self._replica < self._replicas  # else it is no longer active, and about to end


class MarkKeeper(Keeper):
    """Where commits are epoch marks. A base is due when changes take as much room as it does.

    Keys may change hands at a mark. Their new owner has them when the entry of that epoch is in the log: all
    that the old one knew is in files then, and no later epoch is under way.
    """

    def _follow(self, before: "Keeper | None") -> None:  # noqa: ARG002 - it begins with a base
        self._base_bytes = self._changed_bytes = self._changes = 0
        self.awaited: frozenset[int] = frozenset()
        """Groups whose state is not here yet."""
        self._since = 0

    def restore(self, batch: int, since: int = 0) -> None:  # noqa: ARG002 - the log knows
        """From the newest entry: that of the end of the batch before, or of the epoch in which keys moved."""
        entry = self._newest()
        if not self._drop():
            return
        if entry.epoch < since:
            self._store.drop(self._groups)
            self._await(self._groups, since)
        else:
            self._restore(entry.files, entry.pools.get(self._task, 0))

    def move(self, replicas: int, epoch: int) -> None:
        """Behind the mark of this epoch keys are divided among so many; files have all that is here."""
        mine = even_table(1, replicas).groups_of(self._replica)
        before, after = {*self._groups}, {*mine}
        self._store.drop(before - after)
        self._groups, self._replicas = mine, replicas
        self._await(after - before, epoch)

    def _await(self, groups: "Iterable[int]", epoch: int) -> None:
        self.awaited, self._since = frozenset(groups), epoch

    def look(self) -> bool:
        """Take in what was waited for, if it is in the log; whether nothing is missing any more."""
        entry = self._newest()
        if entry.epoch < self._since:
            return False
        files, task = entry.files, self._task
        self._store.take_in(self.awaited, restore(self._storage, files, task, self.awaited, self._adapter))
        self.awaited = frozenset()
        return True

    def _newest(self) -> "Entry":
        entry = newest_entry(self._storage)
        if entry is None or entry.attempt != self._place.attempt:
            raise SupersededError(f"the log in {self._place.root} is another driver's now")
        return entry

    def commit(self, epoch: int) -> "list[StateFile]":
        """Nothing is removed: that is up to the driver."""
        file = self._write(epoch)
        if file is None:
            return []
        if file.kind == "base":
            self._base_bytes, self._changed_bytes, self._changes = file.size, 0, 0
        else:
            self._changed_bytes += file.size
            self._changes += 1
        self._needs_base = self._changed_bytes > self._base_bytes or self._changes >= _MOST_FILES
        return [file]


class StateKeeper(Keeper):
    """Where commits are boundaries."""

    def _follow(self, before: "Keeper | None") -> None:
        known = before if isinstance(before, StateKeeper) else None
        self._files: list[StateFile] = [] if known is None else known._files
        self._parts: list[Part] = [] if known is None else known._parts
        """Its own that are there, in the order of epochs."""
        self._sweeps_at: int | None = None
        """When nobody needs what replicas left behind that are no more; the first one looks after that."""

    def restore(self, batch: int, since: int = 0) -> None:  # noqa: ARG002 - keys move at boundaries here
        """The state at the beginning of a batch, whoever wrote it, and among however many replicas.

        What the others write for this batch is not looked at, and they remove nothing yet of what is.
        """
        task = self._task
        self._sweeps_at = epoch_of(batch) if self._parts and self._replica == 0 else None
        if not self._drop():
            return
        known = newest_parts(read_parts(self._storage), self._place.attempt, epoch_of(batch - 1))
        parts = [part for part in known.values() if part.task == task]
        before = replicas_of(parts) if parts else self._place.replicas.get(task, 0)
        files = without_superseded([*self._place.files, *(file for part in parts for file in part.files)])
        self._restore(files, before)

    def commit(self, epoch: int) -> "list[StateFile]":
        """Write what has changed. The batch before is committed, so what was stale at its end may go."""
        self._forget(epoch - self._place.keep)
        self._needs_base |= len(self._files) >= _FILES_PER_BASE
        file = self._write(epoch)
        if file is not None:
            self._files = [file] if file.kind == "base" else [*self._files, file]
        part = Part(
            attempt=self._place.attempt,
            epoch=epoch,
            task=self._task,
            replica=self._replica,
            replicas=self._replicas,
            files=tuple(self._files),
        )
        write_part(self._storage, part)
        self._parts.append(part)
        return [] if file is None else [file]

    def _forget(self, oldest: int) -> None:
        """Delete what no commit from that epoch on needs; what is written now is not committed yet."""
        old = [part for part in self._parts if part.epoch < oldest]
        self._parts = self._parts[len(old) :]
        needed = {file.name for part in self._parts for file in part.files} | {f.name for f in self._files}
        stale = [part.name for part in old]
        stale += [file.name for part in old for file in part.files if file.name not in needed]
        for name in dict.fromkeys(stale):
            self._storage.delete(name)
        if self._sweeps_at is not None and oldest > self._sweeps_at:
            self._sweeps_at = None
            sweep_task(self._storage, self._task, self._place.attempt, oldest)
