"""Property 10: state is a dictionary, whatever is done to it, and wherever its files are read."""

import contextlib
import os
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

import msgspec
import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from penstock.epochs.errors import LogError
from penstock.epochs.portions import Key, Portion
from penstock.epochs.state import Handed, KeyedState, NotOwnedError, Shelf
from penstock.epochs.state_files import compact, read_changes, restore, with_base, write_changes
from penstock.epochs.tables import even_table, table_of
from penstock.testing.storage import MemoryStorage

if TYPE_CHECKING:
    from penstock.epochs.entries import StateFile

GROUPS = 8
keys = st.integers(0, 15)


def group_of(key: Any) -> int:
    return int(key) % GROUPS


class Dictionary(RuleBasedStateMachine):
    """Replicas that share the keys of a task, against one dictionary that never fails."""

    @initialize(replicas=st.integers(1, 3))
    def start(self, replicas: int) -> None:
        self.storage = MemoryStorage()
        self.files: tuple[StateFile, ...] = ()
        self.attempt, self.epoch, self.bases = 1, 0, 0
        self.now: dict[int, list[int]] = {}
        self.ends: dict[int, int] = {}
        self.clock = 0
        self.committed: dict[int, list[int]] = {}
        self.committed_ends: dict[int, int] = {}
        self._divide(replicas)

    def _divide(self, replicas: int) -> None:
        self.table = even_table(1, replicas, GROUPS)
        self.states = [KeyedState(self.table.groups_of(replica), group_of) for replica in range(replicas)]

    def _state(self, key: int) -> KeyedState:
        return self.states[self.table.owner(group_of(key))]

    @rule(key=keys, value=st.integers(0, 9))
    def put(self, key: int, value: int) -> None:
        self._state(key).put(key, [value])
        self.now[key] = [value]
        self.ends.pop(key, None)

    @rule(key=keys, value=st.integers(0, 9), life=st.integers(1, 5))
    def put_for_a_time(self, key: int, value: int, life: int) -> None:
        self._state(key).put(key, [value], self.clock + life)
        self.now[key] = [value]
        self.ends[key] = self.clock + life

    @rule(passed=st.integers(1, 4))
    def time_passes(self, passed: int) -> None:
        self.clock += passed
        for state in self.states:
            state.expire(self.clock)
        for key in [key for key, end in self.ends.items() if end <= self.clock]:
            del self.ends[key], self.now[key]

    @rule(key=keys, value=st.integers(0, 9))
    def change_in_place(self, key: int, value: int) -> None:
        known = self._state(key).get(key)
        if known is not None:
            known.append(value)
            self.now[key] = [*self.now[key], value]

    @rule(key=keys)
    def remove(self, key: int) -> None:
        self._state(key).remove(key)
        self.now.pop(key, None)
        self.ends.pop(key, None)

    @rule(key=keys, other=keys)
    def item_that_fails(self, key: int, other: int) -> None:
        """It touched two keys of the replica that has it before it failed."""
        state = self._state(key)
        with contextlib.suppress(ZeroDivisionError), state.item():
            known = state.get(key)
            if known is not None:
                known.append(99)
            state.put(key, "new", self.clock + 1)
            if group_of(other) in state.groups:
                state.remove(other)
            raise ZeroDivisionError

    @rule()
    def mark(self) -> None:
        """Every replica writes what has changed; the entry has all files."""
        self.epoch += 1
        for replica, state in enumerate(self.states):
            changes = state.take_changes()
            file = write_changes(self.storage, "count", replica, self.attempt, self.epoch, changes)
            self.files += (file,) if file else ()
        self.committed = {key: list(value) for key, value in self.now.items()}
        self.committed_ends = dict(self.ends)

    @rule()
    def chain(self) -> None:
        """One process takes all that another has, between two marks; what no file has goes along."""
        head, follower = self.states[0], self.states[-1]
        if head is not follower:
            head.take_over(follower.hand_over(sorted(follower.groups)))
            last = len(self.states) - 1
            self.table = table_of(1, [0 if replica == last else replica for replica in self.table.owners])
            self.states.pop()

    @rule(first=st.integers(0, GROUPS - 1), last=st.integers(0, GROUPS - 1))
    def compaction(self, first: int, last: int) -> None:
        if first <= last and self.epoch:
            self.bases += 1
            base = compact(self.storage, self.files, "count", range(first, last + 1), 1000 + self.bases)
            if base:
                self.files = with_base(self.files, base)

    @rule(replicas=st.integers(1, 4))
    def restart(self, replicas: int) -> None:
        """With other replicas, from the files of the last entry."""
        self.attempt += 1
        self._divide(replicas)
        for replica, state in enumerate(self.states):
            state.apply(restore(self.storage, self.files, "count", self.table.groups_of(replica)))
        self.now = {key: list(value) for key, value in self.committed.items()}
        self.ends = dict(self.committed_ends)
        self.time_passes(0)

    @invariant()
    def is_the_dictionary(self) -> None:
        found = dict(pair for state in self.states for pair in state.items())
        assert found == self.now


Dictionary.TestCase.settings = settings(
    max_examples=int(os.environ.get("PENSTOCK_EXAMPLES", "30")), stateful_step_count=25
)
TestDictionary = Dictionary.TestCase


def test_a_key_of_another_replica_is_refused_loudly() -> None:
    state = KeyedState([1], group_of)
    with pytest.raises(NotOwnedError, match="key 2 is of group 2, which this replica does not own"):
        state.get(2)
    with pytest.raises(NotOwnedError, match="group 1 has two owners"):
        state.take_over(KeyedState([1], group_of).hand_over([1]))


def test_files_are_missed_and_told_from_others_by_name() -> None:
    storage = MemoryStorage()
    state = KeyedState([1], group_of)
    state.put(1, "one")
    file = write_changes(storage, "count", 0, 1, 1, state.take_changes())
    assert file is not None
    assert write_changes(storage, "count", 0, 1, 2, state.take_changes()) is None
    state.put(1, "two")
    changes = state.take_changes()
    with pytest.raises(LogError, match="is there already: two processes write as one"):
        write_changes(storage, "count", 0, 1, 1, changes)
    other = write_changes(storage, "count", 0, 2, 1, changes)
    assert other is not None
    storage.files[file.name] = storage.files[other.name]
    with pytest.raises(LogError, match="is not the file that was committed"):
        read_changes(storage, file)
    storage.delete(file.name)
    with pytest.raises(LogError, match="00001-000000000001-00000-changes-count is missing"):
        read_changes(storage, file)


def restored_after_a_chain(kind: type[KeyedState]) -> dict[Any, Any]:
    """A list is changed in place, a key goes and an item fails, before its process hands over and marks."""
    storage = MemoryStorage()
    follower, head = kind([1, 2], group_of), kind([], group_of)
    for key in (1, 2):
        follower.put(key, [key])
    first = write_changes(storage, "count", 0, 1, 1, follower.take_changes())
    follower.get(1).append("in place")
    follower.remove(2)
    follower.put(9, "not for long", until=5)
    with contextlib.suppress(ZeroDivisionError), follower.item():
        follower.get(1).append("of an item that failed")
        raise ZeroDivisionError
    head.take_over(follower.hand_over([1, 2]))
    second = write_changes(storage, "count", 1, 1, 2, head.take_changes())
    state = kind([1, 2], group_of)
    state.apply(restore(storage, [file for file in (second, first) if file], "count", [1, 2]))
    state.expire(5)
    return dict(state.items())


def test_all_that_was_known_is_restored_after_a_chain() -> None:
    assert restored_after_a_chain(KeyedState) == {1: [1, "in place"]}


class OnlyPutsCount(KeyedState):
    """What is read is not taken for changed."""

    def get(self, key: Key, default: Any = None) -> Any:
        (shelf,) = self.shelves.values()
        touched = {**(shelf.touched or {})}
        value = super().get(key, default)
        self.shelves[0] = shelf._replace(touched=touched)
        return value


class NoTombstones(KeyedState):
    """A key that is gone is in no file."""

    def take_changes(self) -> Any:
        return [portion for portion in super().take_changes() if portion.values is not None]


class ForgetsChanged(KeyedState):
    """Only the values are handed over."""

    def hand_over(self, groups: Iterable[int]) -> Handed:
        handed = super().hand_over(groups)
        return Handed(handed.groups, handed.values, ())


class UndoesNothing(KeyedState):
    """An item that fails leaves its traces."""

    def _touch(self, key: Key) -> Shelf:
        self._before = None if self._before is None else {}
        found = super()._touch(key)
        self._before = None if self._before is None else {}
        return found


class EndsAreForgotten(KeyedState):
    """Files have values without their ends."""

    def apply(self, portions: Iterable[Portion]) -> None:
        super().apply(msgspec.structs.replace(portion, until=None) for portion in portions)


@pytest.mark.parametrize(
    "kind", [OnlyPutsCount, NoTombstones, ForgetsChanged, UndoesNothing, EndsAreForgotten]
)
def test_it_breaks_without_any_of_these(kind: type[KeyedState]) -> None:
    assert restored_after_a_chain(kind) != {1: [1, "in place"]}


def test_equal_keys_are_one_key_though_they_are_pickled_differently() -> None:
    storage = MemoryStorage()
    state = KeyedState([0], lambda key: 0)
    part, twin = "part", "".join(["pa", "rt"])
    files = []
    for epoch, keys in enumerate([(1, (part, part)), (1.0, (part, twin))], start=1):
        for key in keys:
            assert state.get(key) is None or epoch == 2
            state.put(key, "known") if epoch == 1 else state.remove(key)
        file = write_changes(storage, "count", 0, 1, epoch, state.take_changes())
        assert file is not None
        files.append(file)
    base = compact(storage, files, "count", [0], 1)
    assert base is not None
    assert read_changes(storage, base) == []
    assert with_base(files, base) == (base,)
