"""Dividing key groups among replicas by their load."""

import doctest

import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.policy import key_division
from penstock.policy.key_division import TOLERANCE, divide, least_possible, loads_of

GROUPS = 24
loads_st = st.lists(
    st.one_of(st.just(0.0), st.just(1.0), st.floats(0.001, 100.0)), min_size=GROUPS, max_size=GROUPS
)
owners_st = st.integers(1, 6).flatmap(
    lambda replicas: st.tuples(
        st.just(replicas), st.lists(st.integers(0, replicas - 1), min_size=GROUPS, max_size=GROUPS)
    )
)
CLOSE = 1 + 1e-9


@given(owners_st, loads_st)
def test_the_most_loaded_replica_is_never_more_loaded_than_before(
    owned: tuple[int, list[int]], loads: list[float]
) -> None:
    replicas, owners = owned
    divided = divide(owners, loads, replicas)
    assert divided.most_loaded <= max(loads_of(owners, loads, replicas)) * CLOSE
    assert divided.groups_moved == sum(a != b for a, b in zip(owners, divided.owners, strict=True))
    if divided.groups_moved:
        assert divided.most_loaded < max(loads_of(owners, loads, replicas)), "no move is for nothing"


@given(owners_st, loads_st, st.integers(1, 8))
def test_it_is_within_its_bounds_for_any_number_of_replicas(
    owned: tuple[int, list[int]], loads: list[float], replicas: int
) -> None:
    _, owners = owned
    divided = divide(owners, loads, replicas)
    assert len(divided.owners) == GROUPS
    assert {*divided.owners} <= {*range(replicas)}, "every group has an owner that is there"
    least, mean = least_possible(loads, replicas), sum(loads) / replicas
    sums = loads_of(divided.owners, loads, replicas)
    assert least <= divided.most_loaded * CLOSE
    if divided.most_loaded > (1 + TOLERANCE) * least * CLOSE:
        busiest = sums.index(max(sums))
        its = [load for load, one in zip(loads, divided.owners, strict=True) if one == busiest and load]
        assert divided.most_loaded <= (mean + min(its)) * CLOSE
    assert divided == divide(owners, loads, replicas), "the same again"
    stay = [group for group in range(GROUPS) if owners[group] < replicas and not loads[group]]
    assert all(divided.owners[group] == owners[group] for group in stay), "what has no load is left alone"


@pytest.mark.parametrize(
    ("share", "before", "after"), [(0.2, 0.60, 0.53), (0.5, 0.75, 0.53), (0.7, 0.85, 0.74)]
)
def test_one_hot_key_among_many_others(share: float, before: float, after: float) -> None:
    groups = 4096
    owners = [group * 2 // groups for group in range(groups)]
    loads = [(1 - share) / (groups - 1)] * groups
    loads[17] = share
    assert max(loads_of(owners, loads, 2)) == pytest.approx(before, abs=0.005)
    divided = divide(owners, loads, 2)
    assert divided.most_loaded == pytest.approx(after, abs=0.006)
    assert divided.owners[17] == 0, "the hot one stays, others leave it"
    assert divided.load_moved == pytest.approx(before - divided.most_loaded, abs=0.001), "and no more"
    rows = 1 + sum(a != b for a, b in zip(divided.owners, divided.owners[1:], strict=False))
    assert rows <= 4, "tables are short"


def test_groups_of_replicas_that_go_are_dealt_out_and_the_others_stay() -> None:
    divided = divide([0, 0, 1, 1, 2, 2], [4.0, 4.0, 4.0, 4.0, 5.0, 3.0], 2)
    assert divided.owners[:4] == [0, 0, 1, 1]
    assert sorted(divided.owners[4:]) == [0, 1]
    assert divided.groups_moved == 2


def test_groups_go_to_new_replicas_in_rows() -> None:
    divided = divide([0] * 12, [1.0] * 12, 3)
    assert divided.owners == [0, 0, 0, 0, 1, 1, 1, 1, 2, 2, 2, 2]


def test_examples_in_docstrings() -> None:
    found = doctest.testmod(key_division)
    assert found.attempted
    assert not found.failed
