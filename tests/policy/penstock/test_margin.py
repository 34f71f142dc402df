"""Margins come to rest where the share that is missed is the one that may be."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.policy.penstock.margin import after_load, after_wait, first_margin


def test_a_miss_moves_as_far_as_all_that_is_held_until_the_next() -> None:
    margin = first_margin(0.9)
    for number in range(10):
        margin = after_wait(margin, 0.9, missed=number == 0)
        margin = after_load(margin, 0.9, missed=number == 0)
    assert margin.factor == pytest.approx(1.0)
    assert margin.uncovered == pytest.approx(0.1)


def test_misses_raise_it_and_there_is_an_end_to_it() -> None:
    margin = first_margin(0.99)
    for _ in range(50):
        margin = after_load(after_wait(margin, 0.99, missed=True), 0.99, missed=True)
    assert margin.factor == pytest.approx(2.5)
    assert margin.quantile > 1.0
    for _ in range(1_000):
        margin = after_load(after_wait(margin, 0.99, missed=False), 0.99, missed=False)
    assert margin.factor == 1.0
    assert margin.quantile == pytest.approx(0.98)


@given(st.lists(st.booleans(), max_size=80), st.sampled_from([0.9, 0.99]))
def test_one_miss_costs_nothing_and_more_never_cost_less(missed: list[bool], share: float) -> None:
    one, other = first_margin(share), first_margin(share)
    for number, is_missed in enumerate(missed):
        one = after_wait(one, share, missed=is_missed)
        other = after_wait(other, share, missed=is_missed or number == 0)
    assert 1.0 <= one.factor <= other.factor
    if sum(missed) <= 1:
        assert one.factor == 1.0
