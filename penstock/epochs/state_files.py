"""Files of state: the changes of an epoch, written by a worker, and bases, written from files alone.

A group is restored from its newest base and the changes after it, in the order of epochs, whoever wrote them.
"""

import pickle
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Final, Literal

import msgspec

from penstock.epochs.entries import CellForm, StateFile
from penstock.epochs.errors import LogError
from penstock.epochs.sealed import checksum, seal, unseal
from penstock.epochs.state import Change, Key
from penstock.epochs.storage import Storage
from penstock.epochs.tables import ranges

STATE_VERSION = 1

_Order = tuple[int, bool, int, int]
_FIRST: Final[_Order] = (-1, False, -1, -1)


def write_changes(
    storage: Storage,
    task: str,
    replica: int,
    attempt: int,
    epoch: int,
    changes: Sequence[Change],
    cells: tuple[CellForm, ...] = (),
) -> StateFile | None:
    """The file of what changed up to a mark; None if nothing did. `cells` is what the task declares."""
    if not changes:
        return None
    groups = {change.group for change in changes}
    return _write(storage, task, replica, attempt, epoch, "changes", changes, groups, cells)


def write_base(
    storage: Storage,
    task: str,
    replica: int,
    attempt: int,
    epoch: int,
    everything: Sequence[Change],
    groups: set[int],
    cells: tuple[CellForm, ...] = (),
) -> StateFile:
    """The file of all that a replica knows of its groups."""
    return _write(storage, task, replica, attempt, epoch, "base", everything, groups, cells)


def read_changes(storage: Storage, file: StateFile) -> list[Change]:
    """What a file has; a `LogError` that names it if it is missing or not the one that was committed."""
    data = storage.read(file.name)
    if data is None:
        raise LogError(f"{file.name} is missing, though an entry names it; restore it")
    content = unseal("state", STATE_VERSION, data, file.name)
    if checksum(content) != file.checksum:
        raise LogError(f"{file.name} is not the file that was committed: its checksum is another's")
    return msgspec.msgpack.decode(content, type=list[Change])


def restore(
    storage: Storage,
    files: Iterable[StateFile],
    task: str,
    groups: Iterable[int],
    adapter: Callable[[StateFile], Callable[[Change], Change | None] | None] = lambda _: None,
) -> list[Change]:
    """What to apply, in order, to know of these groups what the files know.

    `adapter` says how to change what a file has, if that is no longer what is wanted.
    """
    wanted = set(groups)
    found: list[Change] = []
    for file, there in _sources(files, task, wanted):
        changes = [change for change in read_changes(storage, file) if change.group in there]
        adapt = adapter(file)
        if adapt is not None:
            changes = [adapted for change in changes if (adapted := adapt(change)) is not None]
        found += changes
    return found


def compact(
    storage: Storage, files: Sequence[StateFile], task: str, groups: Sequence[int], attempt: int
) -> StateFile | None:
    """A base in place of all files that say something of these groups. It counts once an entry names it."""
    # By the keys themselves: equal ones need not be pickled alike (1 and 1.0, a tuple of equal parts).
    latest: dict[Key, Change] = {}
    for change in restore(storage, files, task, groups):
        latest[pickle.loads(change.key)] = change
    epoch = max((file.epoch for file in files if file.task == task), default=None)
    if epoch is None:
        return None
    alive = [change for change in latest.values() if change.value is not None]
    return _write(storage, task, min(groups), attempt, epoch, "base", alive, set(groups))


def with_base(files: Iterable[StateFile], base: StateFile) -> tuple[StateFile, ...]:
    """The files of an entry that names a base: those of which every group has it instead are left out."""
    return without_superseded([*files, base])


def without_superseded(files: Sequence[StateFile]) -> tuple[StateFile, ...]:
    """Those of which some group has no newer base."""
    bases = _newest_bases(files)
    return tuple(file for file in files if _is_newest(file, bases))


def _is_newest(file: StateFile, bases: Mapping[tuple[str, int], _Order]) -> bool:
    order = _order(file)
    return any(order >= bases[file.task, group] for group in _groups(file))


def _newest_bases(files: Iterable[StateFile]) -> dict[tuple[str, int], _Order]:
    """The newest base of each group of a task; of groups without one what is before all files."""
    found: dict[tuple[str, int], _Order] = defaultdict(lambda: _FIRST)
    for base in sorted((file for file in files if file.kind == "base"), key=_order):
        found.update(dict.fromkeys(((base.task, group) for group in _groups(base)), _order(base)))
    return found


def _sources(files: Iterable[StateFile], task: str, groups: set[int]) -> list[tuple[StateFile, set[int]]]:
    """Files in the order of epochs, each with the groups for which it is read."""
    known = [file for file in files if file.task == task]
    bases = _newest_bases(known)
    read: dict[StateFile, set[int]] = {}
    for file in known:
        order = _order(file)
        there = {group for group in _groups(file) if group in groups and order >= bases[task, group]}
        if there:
            read[file] = there
    return sorted(read.items(), key=lambda pair: _order(pair[0]))


def _order(file: StateFile) -> _Order:
    """A base of an epoch stands for the changes of that epoch, too."""
    return (file.epoch, file.kind == "base", file.attempt, file.replica)


def _groups(file: StateFile) -> Iterator[int]:
    return (group for first, last in file.groups for group in range(first, last + 1))


def _write(
    storage: Storage,
    task: str,
    replica: int,
    attempt: int,
    epoch: int,
    kind: Literal["changes", "base"],
    changes: Sequence[Change],
    groups: set[int],
    cells: tuple[CellForm, ...] = (),
) -> StateFile:
    content = msgspec.msgpack.encode(changes)
    file = StateFile(
        task=task,
        replica=replica,
        attempt=attempt,
        epoch=epoch,
        kind=kind,
        groups=ranges(groups),
        size=len(content),
        checksum=checksum(content),
        cells=cells,
    )
    if not storage.create(file.name, seal("state", STATE_VERSION, content)):
        raise LogError(f"{file.name} is there already: two processes write as one")
    return file
