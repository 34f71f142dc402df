"""What every entry, and the end of every run, must fulfil."""

from collections import Counter, defaultdict
from typing import TYPE_CHECKING

from penstock.epochs.entries import Entry
from penstock.epochs.log import indices, read_entry
from penstock.epochs.portions import Key
from penstock.epochs.reports import VOIDS_BEFORE_QUIET
from penstock.epochs.state import KeyedState
from penstock.epochs.state_files import restore
from tests.epochs.model.graph import GROUPS, Item, Splits, group_of

if TYPE_CHECKING:
    from tests.epochs.model.world import World


class ViolationError(AssertionError):
    """A property does not hold."""


def check_entry(world: "World", entry: Entry) -> None:
    """State and output of an entry are those of an oracle that has read up to its positions."""
    positions = positions_of(entry)
    for task in world.graph.of_kind("keyed"):
        _check_state(world, entry, task.name, positions)
    for task in world.graph.of_kind("transactional"):
        _check_output(world, entry, task.name, positions)
    for task in world.graph.of_kind("plain"):
        missing = {item.id for item in world.graph.expected(task.name, positions)} - set(world.written)
        if missing:
            raise ViolationError(f"entry {entry.epoch}: {task.name} never got {sorted(missing, key=str)}")


def check_log(world: "World") -> None:
    """Every entry that is kept can be restored."""
    for index in indices(world.storage):
        entry = read_entry(world.storage, index)
        assert entry is not None
        for task in world.graph.of_kind("keyed"):
            _check_state(world, entry, task.name, positions_of(entry))


def check_end(world: "World") -> None:
    """The flow was stopped: all is read, committed, seen, and nothing is left over."""
    entry = world.driver.log.entry
    for source, splits in positions_of(entry).items():
        if set(splits.values()) != {world.graph.items}:
            raise ViolationError(f"{source} ended at {splits}")
    check_entry(world, entry)
    check_log(world)
    if world.longest_void > VOIDS_BEFORE_QUIET and not {"void", "lose"} & {*world.setting.faults}:
        raise ViolationError(f"{world.longest_void} epochs one after the other were void")
    if world.outside.lost:
        raise ViolationError(f"committed, though aborted before: {world.outside.lost}")
    if world.outside.prepared:
        raise ViolationError(f"prepared and never committed nor aborted: {[*world.outside.prepared]}")


def positions_of(entry: Entry) -> Splits:
    return {
        source: {split: position.ordinal for split, position in splits.items()}
        for source, splits in entry.positions.items()
    }


def _check_state(world: "World", entry: Entry, task: str, positions: Splits) -> None:
    state = KeyedState(range(GROUPS), group_of)
    state.apply(restore(world.storage, entry.files, task, range(GROUPS)))
    wanted: dict[Key, list[Item]] = defaultdict(list)
    for item in world.graph.expected(task, positions):
        wanted[item.key].append(item)
    found = dict(state.items())
    for key in {*wanted, *found}:
        ids = found.get(key, [])
        expected = [item.id for item in wanted.get(key, [])]
        if Counter(ids) != Counter(expected):
            raise ViolationError(f"entry {entry.epoch}: {task} knows {ids} of key {key}, not {expected}")
        _check_order(task, key, ids)
    writers = Counter(
        (file.epoch, g) for file in entry.files for g in _changed(file.groups, file.kind, file.task, task)
    )
    if writers and max(writers.values()) > 1:
        raise ViolationError(f"entry {entry.epoch}: two writers of one group in one epoch: {writers}")


def _changed(groups: tuple[tuple[int, int], ...], kind: str, owner: str, task: str) -> list[int]:
    if kind != "changes" or owner != task:
        return []
    return [group for first, last in groups for group in range(first, last + 1)]


def _check_order(task: str, key: Key, ids: list[tuple[str | int, ...]]) -> None:
    """Items of one split that came straight from their source are in its order."""
    last: dict[tuple[str | int, ...], int] = {}
    for source, split, ordinal, *path in ids:
        if len(path) == 1:
            assert isinstance(ordinal, int)
            if last.get((source, split, *path), -1) >= ordinal:
                raise ViolationError(f"{task} got items of key {key} out of order: {ids}")
            last[source, split, *path] = ordinal


def _check_output(world: "World", entry: Entry, task: str, positions: Splits) -> None:
    """Committed or to be committed by who reads the entry: each item once, with each count of a key once."""
    outside = world.outside
    parts = [items for handle, items in outside.published.items() if handle.task == task]
    parts += [outside.prepared[h] for h in entry.handles if h.task == task and h in outside.prepared]
    found = [item for items in parts for item in items]
    expected = [item.id for item in world.graph.expected(task, positions)]
    if Counter(item.id for item in found) != Counter(expected):
        more = Counter(item.id for item in found) - Counter(expected)
        less = Counter(expected) - Counter(item.id for item in found)
        raise ViolationError(f"entry {entry.epoch}: {task} lacks {less}, has too many {more}")
    counts: dict[tuple[str | int, int], list[int]] = defaultdict(list)
    for item in found:
        counts[item.id[-1], item.key].append(item.value)
    for (hop, key), values in counts.items():
        if world.graph.sender_at(int(hop)).kind == "keyed" and sorted(values) != [*range(1, len(values) + 1)]:
            raise ViolationError(f"entry {entry.epoch}: counts of key {key} in {task} are {sorted(values)}")
