"""What replicas cost each other, and what percentiles add to means."""

import math

import pytest

from penstock.policy.penstock.capacity import Scalability
from penstock.policy.penstock.tails import tail_of, tails_after
from tests.policy.penstock.flows import row


def seen(exponent: float, *replicas: int) -> Scalability:
    known = Scalability()
    for count in replicas:
        known = known.seen(count, 10.0 * count**exponent, 0.5)
    return known


def test_the_exponent_is_the_slope_of_what_was_seen() -> None:
    assert seen(0.4, 1, 2, 4, 8, 2).exponent == pytest.approx(0.4)
    assert seen(-0.5, 1, 2, 4, 8, 2).exponent == 0.0
    assert seen(3.0, 1, 2, 4, 8, 2).exponent == 0.9


def test_what_says_nothing_changes_nothing() -> None:
    assert seen(0.4, 4, 4, 4, 4, 4).exponent == 0.0
    assert seen(0.4, 1, 8).exponent == 0.0
    assert Scalability().seen(4, 10.0, utilization=0.01) == Scalability()


def test_tails_begin_as_exponential_and_follow_what_is_measured() -> None:
    one = row(150, wait_ms=10.0, constraint={"statistic": "p95", "p95_ms": 125.0})
    (constraint,) = one.constraints
    assert tail_of(constraint, {}) == pytest.approx(-math.log(0.05))
    tails: dict[str, float] = {}
    for _ in range(40):
        tails = tails_after(one, {"c1": 25.0}, tails)
    assert tail_of(constraint, tails) == pytest.approx(5.0, rel=0.01)
    assert tails_after(row(150), {"c1": 25.0}, {}) == {}
