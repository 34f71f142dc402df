"""The commits that a checkpoint on this machine has, what of them can be used, and which files they need."""

import pickle
from collections import defaultdict
from collections.abc import Hashable, Iterable
from dataclasses import dataclass
from pathlib import Path

from penstock.epochs.batches import (
    COMMITS,
    OFFSETS,
    committed_batches,
    decode_positions,
    positions_problem,
)
from penstock.epochs.boundary import IN_CHECKPOINT, StateAt, epoch_of, state_at
from penstock.epochs.errors import LogError
from penstock.epochs.log import indices, name_of, read_entry
from penstock.epochs.marks import is_marked, marked_entry
from penstock.epochs.portions import Portion
from penstock.epochs.retention import missing
from penstock.epochs.state_files import restore
from penstock.epochs.storage import LocalStorage
from penstock.wire.keys import KEY_GROUPS
from penstock.wire.orders import Position


@dataclass(frozen=True, slots=True)
class Commit:
    """A batch that Spark has committed, or an epoch that a mark ended, by its number.

    `state` is None where no task of the flow had any.
    """

    number: int
    time_s: float
    state: StateAt | None
    problem: str | None
    """Why a flow cannot start from it, in words."""
    is_marked: bool = False
    """Whether the number is that of an epoch."""

    @property
    def replicas(self) -> dict[str, int]:
        """Of each task with state."""
        return {} if self.state is None else self.state.entry.pools

    @property
    def size(self) -> int:
        """Bytes of the files that its state is made of; other commits may share them."""
        return 0 if self.state is None else sum(file.size for file in self.state.entry.files)

    @property
    def needs(self) -> list[str]:
        """Names of files that it is made of, in the directory of state."""
        if self.state is None:
            return []
        origin = [] if self.state.origin is None else [name_of(self.state.origin)]
        return [*origin, *self.state.parts, *(file.name for file in self.state.entry.files)]


def storage_of(checkpoint: Path) -> LocalStorage:
    """Where its state is."""
    return LocalStorage(checkpoint / IN_CHECKPOINT)


def commits_of(checkpoint: Path) -> list[Commit]:
    """All that Spark, or a log of epoch marks, knows of, in order.

    Those whose files went long ago have a problem.
    """
    storage = storage_of(checkpoint)
    if marked_entry(storage) is not None:
        return _marked(checkpoint, storage)
    batches = committed_batches(checkpoint)
    if not batches:
        raise LogError(f"{checkpoint} has no commit: it is no checkpoint, or nothing was committed there yet")
    has_state = bool(storage.names("log"))
    return [_commit(checkpoint, batch, storage if has_state else None) for batch in batches]


def last_positions(checkpoint: Path) -> dict[str, dict[str, Position]]:
    """Where every split of every source stands in the newest commit; nothing without one."""
    marked = marked_entry(storage_of(checkpoint))
    if marked is not None:
        return marked.positions
    batches = committed_batches(checkpoint)
    if not batches:
        return {}
    return decode_positions((checkpoint / OFFSETS / str(batches[-1])).read_text()).sources


def usable_commits(checkpoint: Path) -> list[Commit]:
    """Those from which a flow can start."""
    return [commit for commit in commits_of(checkpoint) if commit.problem is None]


def find_commit(checkpoint: Path, number: int) -> Commit:
    """The commit of that number; a `LogError` that names the others if a flow cannot start from it."""
    known = commits_of(checkpoint)
    found = next((commit for commit in known if commit.number == number), None)
    if found is not None and found.problem is None:
        return found
    why = "it is not there" if found is None else found.problem
    usable = ", ".join(str(commit.number) for commit in known if commit.problem is None) or "none"
    raise LogError(f"{checkpoint} has no commit {number} to start from: {why}; there are {usable}")


def keys_of(checkpoint: Path, commit: Commit) -> dict[str, int]:
    """How many keys each task has. Keys are unpickled."""
    if commit.state is None:
        return {}
    entry, storage = commit.state.entry, storage_of(checkpoint)
    every = range(KEY_GROUPS)
    return {task: len(_keys(restore(storage, entry.files, task, every))) for task in entry.pools}


def _keys(portions: Iterable[Portion]) -> set[Hashable]:
    alive: dict[str | None, set[Hashable]] = defaultdict(set)
    for portion in portions:
        keys = pickle.loads(portion.keys)
        if portion.values is None:
            alive[portion.name].difference_update(keys)
        else:
            alive[portion.name].update(keys)
    return set[Hashable]().union(*alive.values())


def _marked(checkpoint: Path, storage: LocalStorage) -> list[Commit]:
    """By epoch, of each the newest entry: one is written again when its output is committed, or at a start.

    A fence is no commit: what it has is that of the one before, or its attempt has gone back.
    """
    found: dict[int, Commit] = {}
    for index in indices(storage):
        try:
            time_s = (checkpoint / IN_CHECKPOINT / name_of(index)).stat().st_mtime
            entry = read_entry(storage, index)
        except (LogError, FileNotFoundError):
            continue  # it is told where all files are looked at, or has just been removed
        if entry is None or entry.kind != "commit" or not is_marked(entry):
            continue
        gone = missing(storage, entry)
        problem = f"{gone[0]} is missing, though the commit names it; restore it" if gone else None
        commit = Commit(entry.epoch, time_s, StateAt(entry, index, ()), problem, is_marked=True)
        found[entry.epoch] = commit
    if not found:
        raise LogError(f"{checkpoint} has no commit that is whole: a start would say why")
    return [found[epoch] for epoch in sorted(found)]


def _commit(checkpoint: Path, batch: int, storage: LocalStorage | None) -> Commit:
    file = checkpoint / COMMITS / str(batch)
    try:
        time_s = file.stat().st_mtime
    except FileNotFoundError:
        return Commit(batch, 0.0, None, f"{COMMITS}/{batch} has just been removed")
    problem = positions_problem(checkpoint, batch)
    if problem is None and batch > 0 and not (checkpoint / OFFSETS / str(batch - 1)).exists():
        why_not = f"{OFFSETS}/{batch - 1}, which Spark needs too, is not kept any more"
        return Commit(batch, time_s, None, why_not)
    if storage is None:
        return Commit(batch, time_s, None, problem)
    try:
        state = state_at(storage, epoch_of(batch))
    except LogError as why:
        return Commit(batch, time_s, None, problem or str(why))
    if problem is None and (gone := missing(storage, state.entry)):
        problem = f"{gone[0]} is missing, though the commit names it; restore it"
    return Commit(batch, time_s, state, problem)
