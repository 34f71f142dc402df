"""Slow changes that luck hides from one interval to the next."""

import math
import random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from penstock.policy.penstock.line import line


def counted(rates: list[float], seed: int) -> list[float]:
    """As they would be counted in 5 s."""
    chance = random.Random(seed)
    return [max(0.0, rate + chance.gauss(0.0, math.sqrt(rate / 5.0))) for rate in rates]


@settings(max_examples=30)
@given(st.integers(0, 1_000), st.sampled_from([-2.0, 2.0]))
def test_a_slow_change_is_seen_through_luck(seed: int, slope: float) -> None:
    found = line(counted([150.0 + slope * number for number in range(-20, 20)], seed), 5.0)
    assert found is not None
    assert found.slope == pytest.approx(slope, abs=0.5)
    assert found.now == pytest.approx(150.0 + 19 * slope, rel=0.1)
    assert found.at(5.0) == pytest.approx(found.now + 5.0 * found.slope)


@settings(max_examples=30)
@given(st.integers(0, 1_000), st.floats(10, 5_000))
def test_luck_is_no_change(seed: int, rate: float) -> None:
    """At most seldom: at four times its standard deviation."""
    assert line(counted([rate] * 40, seed), 5.0) is None


def test_a_step_is_no_line() -> None:
    assert line([100.0] * 20 + [200.0] * 20, 5.0) is None
    assert line([100.0] * 9, 5.0) is None


def test_a_line_that_has_just_begun_is_seen_in_the_last_intervals() -> None:
    found = line([100.0] * 30 + [100.0 + 5.0 * number for number in range(10)], 5.0)
    assert found is not None
    assert found.slope == pytest.approx(5.0)


def test_nothing_falls_below_nothing() -> None:
    found = line([100.0 - 5.0 * number for number in range(20)], 5.0)
    assert found is not None
    assert found.at(10.0) == 0.0
