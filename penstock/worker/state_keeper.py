"""Writes the state of a replica at the end of a batch, and reads it in a new process (epochs/boundary.py).

The first file of a process is a base, with all it knows; after it come files of what has changed, until there
are so many that another base is due. What a base stands for goes when the batch after it ends.
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
    write_part,
)
from penstock.epochs.state_files import restore, without_superseded, write_base, write_changes
from penstock.epochs.storage import LocalStorage
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
    ) -> None:
        self._place = place
        self._store = store
        self._task = task
        self._replica = replica
        self._replicas = replicas
        self._storage = LocalStorage(Path(place.root))
        self._groups = even_table(1, replicas).groups_of(replica)
        self._needs_base = True
        self._files: list[StateFile] = [] if before is None else before._files
        self._part: Part | None = None if before is None else before._part
        self._stale: list[str] = [] if before is None else before._stale

    @property
    def replicas(self) -> int:
        """Among how many the keys are divided."""
        return self._replicas

    def restore(self, batch: int) -> None:
        """The state at the beginning of a batch, whoever wrote it, and among however many replicas.

        What the others write for this batch is not looked at, and they remove nothing yet of what is.
        """
        store, storage, task = self._store, self._storage, self._task
        store.clear()
        store.own_only(self._groups)
        if self._replica >= self._replicas:
            return  # it is no longer active, and about to end
        known = newest_parts(read_parts(storage), self._place.attempt, epoch_of(batch - 1))
        parts = [part for part in known.values() if part.task == task]
        before = replicas_of(parts) if parts else self._place.replicas.get(task, 0)
        files = without_superseded([*self._place.files, *(file for part in parts for file in part.files)])
        store.apply(restore(storage, files, task, self._groups))
        if before == self._replicas:
            store.apply(restore(storage, files, task, [-1 - self._replica]))
        else:
            store.apply_of_replicas(restore(storage, files, task, range(-before, 0)), before, self._replicas)

    def commit(self, batch: int) -> None:
        """Write what has changed. The batch before is committed, so what was stale at its end may go."""
        for name in self._stale:
            self._storage.delete(name)
        self._stale = []
        self._write(epoch_of(batch))
        part = Part(
            attempt=self._place.attempt,
            epoch=epoch_of(batch),
            task=self._task,
            replica=self._replica,
            replicas=self._replicas,
            files=tuple(self._files),
        )
        write_part(self._storage, part)
        self._stale += [] if self._part is None else [self._part.name]
        self._part = part

    def _write(self, epoch: int) -> None:
        writer = (self._storage, self._task, self._replica, self._place.attempt, epoch)
        if not self._needs_base and len(self._files) < _FILES_PER_BASE:
            file = write_changes(*writer, self._store.take_changes())
            self._files += [] if file is None else [file]
        else:
            self._needs_base = False
            self._stale = [file.name for file in self._files]
            groups = {-1 - self._replica, *self._groups}
            self._files = [write_base(*writer, self._store.everything(), groups)]
