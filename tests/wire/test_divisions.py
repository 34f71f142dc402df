"""How key groups are divided among replicas."""

import doctest

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.wire import divisions
from penstock.wire.divisions import Division, Span, Spans, even_or, spans_of, table_problem
from penstock.wire.keys import KEY_GROUPS, owner

LAST = KEY_GROUPS - 1


@given(st.integers(1, 300))
def test_without_a_table_groups_are_divided_as_keys_always_were(replicas: int) -> None:
    even = Division(replicas)
    owners = [owner(group, replicas) for group in range(KEY_GROUPS)]
    assert even.spans == spans_of(owners)
    assert even_or(spans_of(owners), replicas) is None
    assert table_problem(even.spans, replicas) is None


@given(st.dictionaries(st.integers(0, LAST), st.integers(0, 3)), st.integers(0, 3))
def test_every_group_has_one_owner_by_a_table_too(elsewhere: dict[int, int], of_most: int) -> None:
    owners = [elsewhere.get(group, of_most) for group in range(KEY_GROUPS)]
    division = Division(4, spans_of(owners))
    mine = [division.groups_of(replica) for replica in range(4)]
    assert sorted(group for groups in mine for group in groups) == [*range(KEY_GROUPS)]
    assert all(owners[group] == replica for replica in range(4) for group in mine[replica])
    assert table_problem(spans_of(owners), 4) is None
    assert msgspec.json.decode(msgspec.json.encode(division), type=Division) == division


@pytest.mark.parametrize(
    ("table", "problem"),
    [
        ((Span(0, 9, 0),), "10 of 4096 groups have an owner"),
        ((Span(0, 9, 0), Span(11, LAST, 1)), "groups 11 to 4095 do not follow group 9"),
        ((Span(0, 9, 0), Span(9, LAST, 1)), "groups 9 to 4095 do not follow group 9"),
        ((Span(0, LAST, 2),), "groups 0 to 4095 are to be of replica 2 of 2"),
        ((Span(0, LAST + 1, 0),), "4097 of 4096 groups have an owner"),
    ],
)
def test_what_is_no_table(table: Spans, problem: str) -> None:
    assert table_problem(table, 2) == problem


def test_examples_in_docstrings() -> None:
    found = doctest.testmod(divisions)
    assert found.attempted
    assert not found.failed
