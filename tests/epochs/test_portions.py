"""What files of state have, against plain dictionaries and sets of groups."""

import pickle
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.epochs.entries import StateFile
from penstock.epochs.errors import LogError
from penstock.epochs.portions import GONE, NotPicklableError, Portion, portions_from, portions_of
from penstock.epochs.state import KeyedState
from penstock.epochs.state_files import (
    read_changes,
    restore,
    restored_changes,
    without_superseded,
    write_base,
    write_changes,
)
from penstock.epochs.tables import ranges
from penstock.testing.storage import MemoryStorage
from penstock.wire.keys import KEY_GROUPS, key_group

GROUPS = 600

keys = st.one_of(st.integers(0, 3000), st.text("ab", max_size=3), st.tuples(st.text("ab"), st.integers(0, 9)))
values = st.one_of(
    st.none(), st.booleans(), st.integers(), st.binary(max_size=4), st.lists(st.integers(), max_size=2)
)


def of_few(key: Any) -> int:
    return hash(repr(key)) % GROUPS


@given(
    known=st.dictionaries(keys, values, max_size=60),
    gone=st.sets(keys, max_size=5),
    ends=st.dictionaries(keys, st.integers(0, 9), max_size=5),
    kept=st.sets(keys),
    tells_groups=st.booleans(),
)
def test_what_was_known_of_wanted_groups_is_read_again(
    known: dict[Any, Any], gone: set[Any], ends: dict[Any, int], kept: set[Any], *, tells_groups: bool
) -> None:
    """Whether files say the group of each key, or who reads them hashes keys again."""
    group_of, groups = (of_few, GROUPS) if tells_groups else (key_group, KEY_GROUPS)
    wanted = {*map(group_of, kept), *map(group_of, [*known][::2])}
    state = KeyedState(range(groups), group_of, tells_groups=tells_groups)
    for key, value in known.items():
        state.put(key, value, ends.get(key))
    for key in gone - {*known}:
        state.remove(key)
    storage = MemoryStorage()
    file = write_changes(storage, "count", 0, 1, 1, state.take_changes())
    assert state.take_changes() == []
    parts = [state.everything(some) for some in (wanted, {*range(groups)} - wanted)]
    bases = [
        write_base(storage, "count", 0, 1, 2 + number, part, {*range(groups)} if number else wanted)
        for number, part in enumerate(parts)
    ]
    for files in ([] if file is None else [file], [bases[0]]):
        other = KeyedState(wanted, group_of, tells_groups=tells_groups)
        other.apply(restore(storage, files, "count", wanted))
        found = dict(other.items())
        assert found == {key: value for key, value in known.items() if group_of(key) in wanted}
        assert all(type(found[key]) is type(known[key]) for key in found)
        other.expire(10)
        assert {*dict(other.items())} == {*found} - {*ends}
    rest = {pickle.loads(change.key) for change in read_changes(storage, bases[1])}
    assert rest == {key for key in known if group_of(key) not in wanted}
    assert all(
        change.group == group_of(pickle.loads(change.key)) for change in read_changes(storage, bases[1])
    )


@given(portion=st.integers(1, 4), chosen=st.sets(st.integers(0, 5)))
def test_a_part_of_a_portion_has_the_keys_of_its_groups(portion: int, chosen: set[int]) -> None:
    groups, of_keys = [3, 1, 4, 1, 5], ["a", "b", "c", "d", "e"]
    some: list[list[Any]] = [[1, 2, 3, 4, 5], [[1], 2, GONE, "4", b"5"], [GONE] * 5]
    for held in some:
        for one in portions_of((1, 5), [*of_keys], held, {"b": portion}, None, groups):
            part = one.within(chosen)
            mine = [change for change in one.changes() if change.group in chosen]
            assert ([] if part is None else [*part.changes()]) == mine
            assert [*_changes([*portions_from(mine)])] == sorted(mine, key=lambda change: change.group)
            entries = [*one.entries(chosen)]
            assert [pickle.dumps(key) for _, key, _, _ in entries] == [change.key for change in mine]


def _changes(portions: list[Portion]) -> list[Any]:
    return [change for portion in portions for change in portion.changes()]


def test_portions_of_other_groups_are_not_read() -> None:
    storage = MemoryStorage()
    state = KeyedState(range(GROUPS), lambda key: int(key) % GROUPS)  # type: ignore[call-overload]
    for key in range(20 * GROUPS):
        state.put(key, bytes(8))
    base = write_base(storage, "count", 0, 1, 1, state.everything(), {*range(GROUPS)})
    few = [*restore(storage, [base], "count", [7])]
    assert {group for portion in few for group in portion.possible} == {7}
    assert sum(len([*portion.changes()]) for portion in few) == 20
    assert len([*restored_changes(storage, [base], "count", range(GROUPS))]) == 20 * GROUPS


def test_among_many_values_the_one_that_cannot_be_pickled_is_named() -> None:
    held: list[Any] = [*range(2000)]
    held[1234] = lambda: None
    with pytest.raises(NotPicklableError, match="the value of 'key 1234', a function, cannot be pickled"):
        [*portions_of((0, 0), [f"key {number}" for number in range(2000)], held, {})]


def test_files_of_another_version_and_damaged_ones_are_refused_in_words() -> None:
    storage = MemoryStorage()
    state = KeyedState([1], lambda _: 1)
    state.put("one", 1)
    file = write_changes(storage, "count", 0, 1, 1, state.take_changes())
    assert file is not None
    whole = storage.files[file.name]
    for damaged, words in [
        (
            whole.replace(b"state 4", b"state 3", 1),
            "has version 3 of its format; this version of Penstock reads 4",
        ),
        (whole[:-1], "is cut off"),
        (whole[:-1] + b"x", "is damaged: its checksum does not fit"),
        (b"something else", "is not a file of the kind state"),
    ]:
        storage.files[file.name] = damaged
        with pytest.raises(LogError, match=words):
            read_changes(storage, file)


def file_of(epoch: int, replica: int, kind: Any, groups: set[int]) -> StateFile:
    return StateFile(
        task="count",
        replica=replica,
        attempt=1,
        epoch=epoch,
        kind=kind,
        groups=ranges(groups),
        size=1,
        checksum="",
    )


some_files = st.lists(
    st.builds(
        file_of,
        st.integers(1, 5),
        st.integers(0, 2),
        st.sampled_from(["changes", "base"]),
        st.sets(st.integers(-2, 9), min_size=1),
    ),
    max_size=8,
    unique_by=lambda file: file.name,
)


@given(files=some_files)
def test_a_file_is_kept_as_long_as_some_group_of_it_has_no_newer_base(files: list[StateFile]) -> None:
    def newest(group: int) -> tuple[Any, ...]:
        return max((order(file) for file in files if file.kind == "base" and has(file, group)), default=())

    def order(file: StateFile) -> tuple[Any, ...]:
        return file.epoch, file.kind == "base", file.attempt, file.replica

    def has(file: StateFile, group: int) -> bool:
        return any(first <= group <= last for first, last in file.groups)

    kept = [file for file in files if any(has(file, g) and order(file) >= newest(g) for g in range(-2, 10))]
    assert [*without_superseded(files)] == kept


def test_a_file_of_changes_may_be_said_to_be_of_all_groups_that_its_replica_owns() -> None:
    storage = MemoryStorage()
    state = KeyedState(range(10), lambda key: int(key))  # type: ignore[call-overload]
    state.put(3, "three")
    state.put(5, "five")
    changes = state.take_changes()
    exact = write_changes(storage, "count", 0, 1, 1, changes)
    owned = write_changes(storage, "count", 0, 1, 2, changes, owned=((0, 9),))
    assert exact is not None
    assert owned is not None
    assert (exact.groups, owned.groups) == (((3, 3), (5, 5)), ((0, 9),))
    read = {
        key: value
        for portion in restore(storage, [owned], "count", [4, 5])
        for _, key, value, _ in portion.entries({4, 5})
    }
    assert read == {5: "five"}
