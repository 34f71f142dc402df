"""Writes the state of a replica for a commit, and reads it in a new process.

The first file of a process is a base, with all it knows; after it come files of what has changed, until
another base is due. Where commits are boundaries (epochs/boundary.py), each writes down which files its state
is made of, and removes what no commit needs that is kept; where they are epoch marks, the driver does both.
"""

import platform
import time
from abc import ABC, abstractmethod
from itertools import chain, groupby
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
from penstock.epochs.errors import LogError, SupersededError
from penstock.epochs.log import newest_entry
from penstock.epochs.migration import Adapt, adapter, written_forms
from penstock.epochs.state import STRETCH
from penstock.epochs.state_files import (
    restore,
    without_superseded,
    write_base,
    write_changes,
)
from penstock.epochs.storage import Storage
from penstock.epochs.tables import ranges
from penstock.wire.divisions import Division
from penstock.worker.bridged_files import storage_at
from penstock.worker.state_store import StateStore

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from penstock.epochs.entries import Entry, StateFile
    from penstock.epochs.portions import Portion

_FILES_PER_BASE: Final = 16
_MOST_FILES: Final = 64
_CHANGES_PER_BASE: Final = 4
"""How many times the room of a base its changes may take."""
_MOMENT_NS: Final = 5_000_000
_SLICES: Final = 8
"""A base of all groups holds a worker up: with up to so many commits after each other, each has a part."""
_SEEN_WITHIN_S: Final = 10.0
_LOOK_AGAIN_S: Final = 0.1


class Keeper(ABC):
    """Of one replica of a task; `before` is what it had among another number of replicas."""

    def __init__(
        self,
        place: Place,
        store: StateStore,
        task: str,
        replica: int,
        division: Division,
        before: "Keeper | None" = None,
        storage: Storage | None = None,
    ) -> None:
        self._place = place
        self._store = store
        self._task = task
        self._replica = replica
        self._division = division
        self._storage: Storage = storage or storage_at(place)
        self._own(division.groups_of(replica))
        self._cells = written_forms(store.parts)
        self._needs_base = True
        self._follow(before)

    def _own(self, groups: "Sequence[int]") -> None:
        self._groups = groups
        self._spans = ranges((-1 - self._replica, *groups))
        """The same in short, with that of the replica's own values."""

    @property
    def division(self) -> Division:
        """How the keys are divided."""
        return self._division

    @property
    def replicas(self) -> int:
        """Among how many the keys are divided."""
        return self._division.replicas

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
        if before == self.replicas:
            store.apply(restore(storage, files, task, [-1 - self._replica], self._adapter))
        else:
            of_all = restore(storage, files, task, range(-before, 0), self._adapter)
            store.apply_of_replicas(of_all, before, self.replicas)

    def _adapter(self, file: "StateFile") -> Adapt | None:
        return adapter(file, self._store.parts, self._place.dropped)

    def _write(self, epoch: int) -> "StateFile | None":
        """What has changed, or all if a base is due; None if nothing has."""
        writer = (self._storage, self._task, self._replica, self._place.attempt, epoch)
        if not self._needs_base:
            return write_changes(*writer, self._store.take_changes(), self._cells, self._spans)
        self._needs_base = False
        groups = {-1 - self._replica, *self._groups}
        return write_base(*writer, self._store.everything(), groups, self._cells)

    def _drop(self) -> bool:
        """Forget what is in memory; whether the replica is one of those that have state now."""
        self._store.clear()
        self._store.own_only(self._groups)
        return self._replica < self.replicas  # else it is no longer active, and about to end


def entry_of_attempt(storage: Storage, place: Place) -> "Entry":
    """The newest entry of the log, which the driver has made for this attempt or in it.

    Directories that machines share may show it a little later than it was made, and others never.
    """
    until_s = time.monotonic() + _SEEN_WITHIN_S
    while (entry := newest_entry(storage)) is None or entry.attempt < place.attempt:
        if time.monotonic() > until_s:
            raise LogError(
                f"{place.root} on {platform.node()} is not what the driver has there; give a checkpoint that"
                " all machines see: a directory that they mount, or an address as hdfs://HOST/DIRECTORY"
            )
        time.sleep(_LOOK_AGAIN_S)
    if entry.attempt > place.attempt:
        raise SupersededError(f"the log in {place.root} is another driver's now")
    return entry


class MarkKeeper(Keeper):
    """Where commits are epoch marks. A base is due when changes take four times the room that it does.

    The first one has all groups. Others come in slices, a commit each, beside what has changed elsewhere.

    Keys may change hands at a mark. Their new owner has them when the entry of that epoch is in the log: all
    that the old one knew is in files then, and no later epoch is under way. Where there are values of
    replicas, all of the state waits for that: they are put together from those of all.
    """

    def _follow(self, before: "Keeper | None") -> None:  # noqa: ARG002 - it begins with a base
        self._base_bytes = self._changed_bytes = self._changes = 0
        self._slices: list[list[int]] = []
        """Groups whose next base is due, with the next commit first."""
        self._sliced_bytes = 0
        self.awaited: frozenset[int] = frozenset()
        """Groups whose state is not here yet."""
        self._since = 0
        self._coming: Iterator[Portion] | None = None

    def restore(self, batch: int, since: int = 0) -> None:  # noqa: ARG002 - the log knows
        """From the newest entry: that of the end of the batch before, or of the epoch in which keys moved."""
        entry = entry_of_attempt(self._storage, self._place)
        if not self._drop():
            return
        if entry.epoch < since:
            if not self._store.replicated:
                self._store.drop(self._groups)
            self._await(self._groups, since)
        else:
            self._restore(entry.files, entry.pools.get(self._task, 0))

    def move(self, division: Division, epoch: int) -> None:
        """Behind the mark of this epoch keys are divided in this way; files have all that is here."""
        mine = division.groups_of(self._replica)
        before, after = {*self._groups}, {*mine}
        self._own(mine)
        self._division = division
        self._slices = []  # they are of groups that are gone: it begins anew with the next commit
        if self._store.replicated:
            self._needs_base = True
            self._drop()
            self._await(after, epoch)
            return
        self._store.drop(before - after)
        self._await(after - before, epoch)

    def _await(self, groups: "Iterable[int]", epoch: int) -> None:
        self.awaited, self._since, self._coming = frozenset(groups), epoch, None

    @property
    def awaits_all(self) -> bool:
        """Whether every item has to wait, whatever its key."""
        return bool(self.awaited) and bool(self._store.replicated)

    def look(self) -> bool:
        """Take in what was waited for, if it is in the log, but for a moment only: items of other keys are to
        be worked on. Whether nothing is missing any more.
        """
        if self._coming is None:
            entry = entry_of_attempt(self._storage, self._place)
            if entry.epoch < self._since:
                return False
            if self._store.replicated:
                self._restore(entry.files, entry.pools.get(self._task, 0))
                self.awaited = frozenset()
                return True
            self._store.own_more(self.awaited)
            self._coming = restore(self._storage, entry.files, self._task, self.awaited, self._adapter)
        until_ns = time.monotonic_ns() + _MOMENT_NS
        for portion in self._coming:
            self._store.apply_part(portion)
            if time.monotonic_ns() > until_ns:
                return False
        self._store.end_apply()
        self._coming, self.awaited = None, frozenset()
        return True

    @property
    def is_taking_in(self) -> bool:
        """Whether some of what was waited for is here, and more can be had at once."""
        return self._coming is not None

    def commit(self, epoch: int) -> "list[StateFile]":
        """Nothing is removed: that is up to the driver."""
        if self._needs_base:
            whole = self._write(epoch)
            assert whole is not None, "a base is written, however little it has"
            self._base_bytes, self._changed_bytes, self._changes = whole.size, 0, 0
            return [whole]
        is_due = self._changed_bytes > _CHANGES_PER_BASE * self._base_bytes or self._changes >= _MOST_FILES
        if is_due and not self._slices and not self.awaited:
            self._slices = _slices_of(-1 - self._replica, self._groups)
            self._sliced_bytes = self._changed_bytes = self._changes = 0
        files = [self._write_slice(epoch)] if self._slices else []
        changes = self._write(epoch)
        if changes is not None:
            self._changed_bytes += changes.size
            self._changes += 1
            files.append(changes)
        return files

    def _write_slice(self, epoch: int) -> "StateFile":
        """A base of some groups. What has changed in them is in it."""
        groups = self._slices.pop(0)
        writer = (self._storage, self._task, self._replica, self._place.attempt, epoch)
        file = write_base(*writer, self._store.everything(groups), {*groups}, self._cells)
        self._sliced_bytes += file.size
        if not self._slices:
            self._base_bytes = self._sliced_bytes
        return file


def _slices_of(of_replica: int, groups: "Iterable[int]") -> list[list[int]]:
    """No stretch is in two of them: its keys would have to be hashed to be parted.

    >>> [(part[0], part[-1]) for part in _slices_of(-1, range(1024, 1792))]
    [(-1, 1279), (1280, 1535), (1536, 1791)]
    """
    stretches = [[*some] for _, some in groupby(groups, lambda group: group // STRETCH)] or [[]]
    size = -(-len(stretches) // _SLICES)
    slices = [[*chain(*stretches[first : first + size])] for first in range(0, len(stretches), size)]
    return [[of_replica, *slices[0]], *slices[1:]]


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
        entry_of_attempt(self._storage, self._place)
        self._sweeps_at = epoch_of(batch) if self._parts and self._replica == 0 else None
        if not self._drop():
            return
        known = newest_parts(read_parts(self._storage), self._place.attempt, epoch_of(batch - 1))
        parts = [part for part in known.values() if part.task == task]
        self._check_seen(parts, epoch_of(batch - 1))
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
            replicas=self.replicas,
            files=tuple(self._files),
        )
        write_part(self._storage, part)
        self._parts.append(part)
        return [] if file is None else [file]

    def _check_seen(self, parts: "Sequence[Part]", epoch: int) -> None:
        """An older state would be taken without a word where a shared directory shows new names late."""
        if self._place.epoch < epoch and all(part.epoch != epoch for part in parts):
            raise LogError(
                f'no part of task "{self._task}" of epoch {epoch} is seen in {self._place.root} on'
                f" {platform.node()}, though it is committed: machines must see new files there at once"
            )

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
