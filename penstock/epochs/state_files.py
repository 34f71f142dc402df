"""Files of state: the changes of an epoch, written by a worker, and bases, written from files alone.

A group is restored from its newest base and the changes after it, in the order of epochs, whoever wrote them.
"""

import pickle
import sys
from bisect import bisect_left
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from types import MappingProxyType
from typing import Final, Literal

import msgspec

from penstock.epochs.entries import CellForm, StateFile
from penstock.epochs.errors import LogError
from penstock.epochs.migration import Adapt
from penstock.epochs.portions import Change, Key, Portion, portions_from
from penstock.epochs.sealed import checksum, seal, unsealed
from penstock.epochs.storage import Storage
from penstock.epochs.tables import ranges

STATE_VERSION = 4
Adapter = Callable[[StateFile], Adapt | None]
Spans = tuple[tuple[int, int], ...]
"""First and last groups."""

_Order = tuple[int, bool, int, int]
_FIRST: Final[_Order] = (-1, False, -1, -1)
_CONTENT: Final = msgspec.msgpack.Decoder(tuple[list[tuple[int, int]], list[msgspec.Raw]])
_PORTION: Final = msgspec.msgpack.Decoder(Portion)


def write_changes(
    storage: Storage,
    task: str,
    replica: int,
    attempt: int,
    epoch: int,
    changes: Sequence[Portion],
    cells: tuple[CellForm, ...] = (),
    owned: Spans | None = None,
) -> StateFile | None:
    """The file of what changed up to a mark; None if nothing did. `cells` is what the task declares.

    It is said to be of all groups that are `owned`, as many change each time; else of those in it.
    """
    if not changes:
        return None
    spans = ranges(group for portion in changes for group in portion.possible) if owned is None else owned
    return _write(storage, task, replica, attempt, epoch, "changes", changes, spans, cells)


def write_base(
    storage: Storage,
    task: str,
    replica: int,
    attempt: int,
    epoch: int,
    everything: Sequence[Portion],
    groups: set[int],
    cells: tuple[CellForm, ...] = (),
) -> StateFile:
    """The file of all that a replica knows of its groups."""
    return _write(storage, task, replica, attempt, epoch, "base", everything, ranges(groups), cells)


def read_changes(storage: Storage, file: StateFile) -> list[Change]:
    """What a file has; a `LogError` that names it if it is missing or not the one that was committed."""
    return [change for raw in _content(storage, file)[1] for change in _PORTION.decode(raw).changes()]


def _content(storage: Storage, file: StateFile) -> tuple[list[tuple[int, int]], list[msgspec.Raw]]:
    """The groups of each portion, and the portions."""
    data = storage.read(file.name)
    if data is None:
        raise LogError(f"{file.name} is missing, though an entry names it; restore it")
    content, digest = unsealed("state", STATE_VERSION, data, file.name)
    if digest != file.checksum:
        raise LogError(f"{file.name} is not the file that was committed: its checksum is another's")
    return _CONTENT.decode(content)


def restore(
    storage: Storage,
    files: Iterable[StateFile],
    task: str,
    groups: Iterable[int],
    adapter: Adapter = lambda _: None,
) -> Iterator[Portion]:
    """What to apply, in order, to know of these groups what the files know; a file is read when it is needed.

    `adapter` says how to change what a file has, if that is no longer what is wanted.
    """
    for file, there in _sources(files, task, groups):
        adapt = adapter(file)
        for (first, last), raw in zip(*_content(storage, file), strict=True):
            if there.isdisjoint(range(first, last + 1)):
                continue
            portion = _PORTION.decode(raw).within(there)
            if portion is not None and adapt is not None:
                made = map(adapt, portion.changes())
                yield from portions_from(one for one in made if one is not None)
            elif portion is not None:
                yield portion


def restored_changes(
    storage: Storage, files: Iterable[StateFile], task: str, groups: Iterable[int]
) -> Iterator[Change]:
    """The same, key by key."""
    for portion in restore(storage, files, task, groups):
        yield from portion.changes()


def compact(
    storage: Storage, files: Sequence[StateFile], task: str, groups: Sequence[int], attempt: int
) -> StateFile | None:
    """A base in place of all files that say something of these groups. It counts once an entry names it."""
    # By the keys themselves: equal ones need not be pickled alike (1 and 1.0, a tuple of equal parts).
    latest: dict[tuple[str | None, Key], Change] = {}
    for change in restored_changes(storage, files, task, groups):
        latest[change.name, pickle.loads(change.key)] = change
    epoch = max((file.epoch for file in files if file.task == task), default=None)
    if epoch is None:
        return None
    alive = [change for change in latest.values() if change.value is not None]
    return _write(storage, task, min(groups), attempt, epoch, "base", [*portions_from(alive)], ranges(groups))


def with_base(files: Iterable[StateFile], base: StateFile) -> tuple[StateFile, ...]:
    """The files of an entry that names a base: those of which every group has it instead are left out."""
    return without_superseded([*files, base])


def without_superseded(
    files: Sequence[StateFile], pools: Mapping[str, int] = MappingProxyType({})
) -> tuple[StateFile, ...]:
    """Those of which some group has no newer base; that of a replica beyond its pool is nobody's any more."""
    stretches = _Stretches(files)
    bases = _newest_bases(files, stretches)

    def is_needed(file: StateFile) -> bool:
        lowest = -pools.get(file.task, sys.maxsize)
        firsts = (first for first, _ in stretches.of(file) if first >= lowest)
        return any(_order(file) >= bases[file.task, first] for first in firsts)

    return tuple(file for file in files if is_needed(file))


class _Stretches:
    """Groups that are in the same files have one answer: there are few such stretches, and many groups."""

    def __init__(self, files: Iterable[StateFile]) -> None:
        ends = {end for file in files for first, last in file.groups for end in (first, last + 1)}
        self._begins = sorted(ends)

    def of(self, file: StateFile) -> Iterator[tuple[int, int]]:
        """Where those of a file begin and end."""
        begins = self._begins
        for first, last in file.groups:
            at = bisect_left(begins, first)
            while begins[at] <= last:
                yield begins[at], begins[at + 1]
                at += 1


def _newest_bases(files: Iterable[StateFile], stretches: _Stretches) -> Mapping[tuple[str, int], _Order]:
    """The newest base of each stretch of a task; of those without one what is before all files."""
    found: dict[tuple[str, int], _Order] = defaultdict(lambda: _FIRST)
    for base in sorted((file for file in files if file.kind == "base"), key=_order):
        found.update(dict.fromkeys(((base.task, first) for first, _ in stretches.of(base)), _order(base)))
    return found


def _sources(
    files: Iterable[StateFile], task: str, groups: Iterable[int]
) -> list[tuple[StateFile, set[int]]]:
    """Files in the order of epochs, each with the groups for which it is read."""
    known = [file for file in files if file.task == task]
    stretches, wanted = _Stretches(known), sorted(groups)
    bases = _newest_bases(known, stretches)
    found = []
    for file in sorted(known, key=_order):
        there: set[int] = set()
        for first, end in stretches.of(file):
            if _order(file) >= bases[task, first]:
                there.update(wanted[bisect_left(wanted, first) : bisect_left(wanted, end)])
        if there:
            found.append((file, there))
    return found


def _order(file: StateFile) -> _Order:
    """A base of an epoch stands for the changes of that epoch, too."""
    return (file.epoch, file.kind == "base", file.attempt, file.replica)


def _write(
    storage: Storage,
    task: str,
    replica: int,
    attempt: int,
    epoch: int,
    kind: Literal["changes", "base"],
    portions: Sequence[Portion],
    spans: Spans,
    cells: tuple[CellForm, ...] = (),
) -> StateFile:
    content = msgspec.msgpack.encode(([portion.span for portion in portions], portions))
    digest = checksum(content)
    file = StateFile(
        task=task,
        replica=replica,
        attempt=attempt,
        epoch=epoch,
        kind=kind,
        groups=spans,
        size=len(content),
        checksum=digest,
        cells=cells,
    )
    if not storage.create(file.name, seal("state", STATE_VERSION, content, digest)):
        raise LogError(f"{file.name} is there already: two processes write as one")
    return file
