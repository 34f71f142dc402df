"""Items known in full and items known by a share count by how many there were."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.stats.fair_share import fair_share


@given(st.integers(1, 200), st.integers(0, 200), st.integers(1, 30))
def test_both_kinds_have_the_same_share(sampled: int, in_full: int, one_of: int) -> None:
    found = fair_share(["s"] * sampled, ["f"] * in_full, sampled * one_of + in_full)
    assert found.count("s") == sampled
    assert found.count("f") == pytest.approx(in_full / one_of, abs=0.5)


def test_a_mean_is_that_of_all_items() -> None:
    others, lists = [3.0] * 1000, [0.0] * 200
    found = fair_share(others[::10], lists, 1200)
    assert sum(found) / len(found) == pytest.approx(2.5)


def test_those_kept_are_spread_evenly() -> None:
    assert fair_share(["s"] * 2, list("abcdefgh"), 4 + 8) == ["s", "s", "a", "c", "e", "g"]


@given(st.lists(st.integers()), st.integers(0, 100))
def test_without_a_share_to_go_by_all_are_kept(in_full: list[int], processed: int) -> None:
    assert fair_share([], in_full, processed) == in_full


def test_counts_that_disagree_keep_no_more_than_there_are() -> None:
    assert fair_share(["s"] * 5, ["f"] * 3, 4) == ["s"] * 5 + ["f"] * 3
