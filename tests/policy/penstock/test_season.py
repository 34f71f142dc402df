"""A load that comes again is expected to, and nothing else is."""

import math
import random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from penstock.policy.penstock.forecast import History, forecast, learnt

LUCKY = random.Random(7)


def history(rates: list[float], ahead: int = 1) -> History:
    known = History()
    for rate in rates:
        known = learnt(known, rate, 5.0, ahead)
    return known


def days(count: float, length: int) -> list[float]:
    """Quiet until noon; then within two intervals a crowd, which goes slowly."""
    return [_at(number % length / length, 1.0 / length) for number in range(round(count * length))]


def _at(time: float, step: float) -> float:
    return 100.0 if time < 0.5 else 300.0 if time < 0.5 + step else 500.0 - 700.0 * (time - 0.5)


def lucky(rates: list[float]) -> list[float]:
    """As they would be counted in 5 s."""
    return [max(0.0, rate + LUCKY.gauss(0.0, math.sqrt(rate / 5.0))) for rate in rates]


@settings(max_examples=15, deadline=None)
@given(st.integers(12, 60), st.floats(2.8, 3.0), st.integers(1, 5))
def test_a_third_day_is_expected_as_the_second_was(length: int, count: float, ahead: int) -> None:
    rates = days(count, length)
    found = forecast(history(rates, ahead), 5.0, ahead, None)
    assert found.season is not None
    assert found.season % length == 0
    then = days(count + 1, length)[len(rates) - 1 + ahead]
    assert found.expected_per_s == pytest.approx(then)


def test_one_day_is_no_season() -> None:
    assert forecast(history(days(1.9, 30)), 5.0, 1, None).season is None


@pytest.mark.parametrize("rate", [40.0, 400.0, 4_000.0])
@pytest.mark.parametrize("seed", [77, 307, 355, 419, 435, 571, 689, 704])
def test_luck_has_no_season(seed: int, rate: float) -> None:
    """Seeds with an interval that is far from the others."""
    chance = random.Random(seed)
    rates = [max(0.0, rate + chance.gauss(0.0, math.sqrt(rate / 5.0))) for _ in range(150)]
    known = History()
    for number, one in enumerate(rates):
        known = learnt(known, one, 5.0, 1)
        if number > 20:
            assert forecast(known, 5.0, 1, None).season is None


def test_the_shortest_of_seasons_that_are_as_good_counts() -> None:
    assert forecast(history(lucky(days(6.0, 24))), 5.0, 1, None).season == 24


def test_another_day_is_met_without() -> None:
    rates = days(3.0, 30)
    assert forecast(history(rates), 5.0, 1, None).season is not None
    assert forecast(history([*rates, 900.0]), 5.0, 1, None).season is None
    assert forecast(history([*rates, 900.0]), 5.0, 1, None).expected_per_s >= 900.0


def test_what_comes_again_is_no_surprise() -> None:
    teeth = [400.0, 100.0, 160.0, 220.0, 280.0, 340.0]
    known = history(teeth * 5)
    again, never = (forecast(known, 5.0, 1, 0.99, may_repeat=may) for may in (True, False))
    assert again.expected_per_s == 400.0
    assert again.surprising == 0.0
    assert again.planned_per_s < 1.05 * 400.0
    assert never.season is None
    assert never.surprising > 0.0


def test_a_forecast_lasts_until_the_next_order_can_come() -> None:
    known = history(days(3.4, 30), ahead=2)
    most = forecast(known, 5.0, 2, None, until=3).expected_per_s
    assert most == max(forecast(known, 5.0, time, None).expected_per_s for time in (2, 3))
