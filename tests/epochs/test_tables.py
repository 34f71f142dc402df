"""Tables of key groups."""

import doctest

import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.epochs import sealed, tables
from penstock.epochs.tables import even_table, moves, ranges, table_of
from penstock.testing import storage
from penstock.wire.keys import KEY_GROUPS, owner

owners = st.integers(1, 20).flatmap(
    lambda groups: st.tuples(*[st.lists(st.integers(0, 3), min_size=groups, max_size=groups)] * 2)
)


@given(owners)
def test_moves_lead_from_one_table_to_the_other(pair: tuple[list[int], list[int]]) -> None:
    before, after = pair
    old, new = table_of(1, before), table_of(2, after)
    assert (old.owners, new.owners) == (before, after)
    changed = list(before)
    for move in moves(old, new):
        for group in move.groups:
            assert changed[group] == move.giver
            changed[group] = move.taker
    assert changed == after
    assert [new.owner(group) for group in range(len(after))] == after
    assert sorted(group for replica in range(4) for group in new.groups_of(replica)) == list(
        range(len(after))
    )


@given(st.integers(1, 9))
def test_the_even_table_is_that_of_the_wiring_by_key(replicas: int) -> None:
    assert even_table(1, replicas).owners == [owner(group, replicas) for group in range(KEY_GROUPS)]
    assert even_table(1, replicas, 16).owners == [group * replicas // 16 for group in range(16)]


@given(st.sets(st.integers(0, 30)))
def test_ranges_hold_the_same_groups(groups: set[int]) -> None:
    assert {g for first, last in ranges(groups) for g in range(first, last + 1)} == groups


def test_what_cannot_be_is_refused() -> None:
    with pytest.raises(ValueError, match="the table has no group 3"):
        table_of(1, [0, 0]).owner(3)
    with pytest.raises(ValueError, match="2 groups cannot become 3"):
        moves(table_of(1, [0, 0]), table_of(2, [0, 0, 0]))


def test_examples_in_docstrings() -> None:
    for module in (tables, sealed, storage):
        found = doctest.testmod(module)
        assert found.attempted
        assert not found.failed
