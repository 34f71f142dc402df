"""Writes the state of a replica at the end of a batch, and reads it in a new process (epochs/boundary.py).

The first file of a process is a base, with all it knows; after it come files of what has changed, until there
are so many that another base is due. What none of the commits that are kept needs goes with the next one.
"""

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
from penstock.epochs.migration import Adapt, adapter, written_forms
from penstock.epochs.state_files import restore, without_superseded, write_base, write_changes
from penstock.epochs.storage import LocalStorage, Storage
from penstock.epochs.tables import even_table
from penstock.worker.state_store import StateStore

if TYPE_CHECKING:
    from penstock.epochs.entries import StateFile

_FILES_PER_BASE: Final = 16


class StateKeeper:
    """Of one replica of a task; `before` is what it had among another number of replicas."""

    def __init__(
        self,
        place: Place,
        store: StateStore,
        task: str,
        replica: int,
        replicas: int,
        before: "StateKeeper | None" = None,
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
        self._files: list[StateFile] = [] if before is None else before._files
        self._parts: list[Part] = [] if before is None else before._parts
        """Its own that are there, in the order of epochs."""
        self._sweeps_at: int | None = None
        """When nobody needs what replicas left behind that are no more; the first one looks after that."""

    @property
    def replicas(self) -> int:
        """Among how many the keys are divided."""
        return self._replicas

    def restore(self, batch: int) -> None:
        """The state at the beginning of a batch, whoever wrote it, and among however many replicas.

        What the others write for this batch is not looked at, and they remove nothing yet of what is.
        """
        store, storage, task = self._store, self._storage, self._task
        self._sweeps_at = epoch_of(batch) if self._parts and self._replica == 0 else None
        store.clear()
        store.own_only(self._groups)
        if self._replica >= self._replicas:
            return  # it is no longer active, and about to end
        known = newest_parts(read_parts(storage), self._place.attempt, epoch_of(batch - 1))
        parts = [part for part in known.values() if part.task == task]
        before = replicas_of(parts) if parts else self._place.replicas.get(task, 0)
        files = without_superseded([*self._place.files, *(file for part in parts for file in part.files)])
        store.apply(restore(storage, files, task, self._groups, self._adapter))
        if before == self._replicas:
            store.apply(restore(storage, files, task, [-1 - self._replica], self._adapter))
        else:
            of_all = restore(storage, files, task, range(-before, 0), self._adapter)
            store.apply_of_replicas(of_all, before, self._replicas)

    def _adapter(self, file: "StateFile") -> Adapt | None:
        return adapter(file, self._store.parts, self._place.dropped)

    def commit(self, batch: int) -> None:
        """Write what has changed. The batch before is committed, so what was stale at its end may go."""
        epoch = epoch_of(batch)
        self._forget(epoch - self._place.keep)
        self._write(epoch)
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

    def _write(self, epoch: int) -> None:
        writer = (self._storage, self._task, self._replica, self._place.attempt, epoch)
        if not self._needs_base and len(self._files) < _FILES_PER_BASE:
            file = write_changes(*writer, self._store.take_changes(), self._cells)
            self._files += [] if file is None else [file]
        else:
            self._needs_base = False
            groups = {-1 - self._replica, *self._groups}
            self._files = [write_base(*writer, self._store.everything(), groups, self._cells)]
