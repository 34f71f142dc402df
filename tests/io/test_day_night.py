"""The day/night curve: its shape, its integral and its bursts."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.io.day_night import Burst, day_night
from penstock.io.schedule import ScheduleError


@given(st.floats(0, 100), st.floats(1, 1000), st.floats(1, 1e5), st.integers(2, 300))
def test_a_period_has_the_mean_of_low_and_high(
    low: float, span: float, period_s: float, resolution: int
) -> None:
    schedule = day_night(low, low + span, period_s, resolution=resolution)
    assert schedule.items_by(period_s) == pytest.approx((low + span / 2) * period_s, rel=1e-6)


@given(st.floats(0.1, 100), st.floats(1, 1000), st.floats(0, 1))
def test_rates_stay_between_low_and_high(low: float, span: float, at: float) -> None:
    schedule = day_night(low, low + span, "1 h")
    assert low * (1 - 1e-9) <= schedule.rate_at(at * 3600) <= (low + span) * (1 + 1e-9)


def test_low_at_the_start_high_in_the_middle_and_again() -> None:
    schedule = day_night(10, 100, "1 h")
    assert schedule.rate_at(0) == pytest.approx(10, abs=0.1)
    assert schedule.rate_at(1799) == pytest.approx(100, abs=0.1)
    assert schedule.rate_at(3600 + 5) == schedule.rate_at(5)
    assert schedule.total_items is None


def test_a_burst_multiplies_the_rate_exactly_where_it_lies() -> None:
    burst = day_night(10, 100, 100, bursts=[Burst(at=31, lasts="5 s", factor=3)])
    assert burst.items_by(31) == pytest.approx(plain_between(0, 31), rel=1e-9)
    during = burst.items_by(36) - burst.items_by(31)
    assert during == pytest.approx(3 * (plain_between(31, 36)), rel=1e-9)
    assert burst.items_by(100) - burst.items_by(36) == pytest.approx(plain_between(36, 100), rel=1e-9)


def plain_between(begin_s: float, end_s: float) -> float:
    cut = day_night(10, 100, 100, bursts=[Burst(begin_s, end_s - begin_s, 1.0)])
    return cut.items_by(end_s) - cut.items_by(begin_s)


def test_refusals_name_the_values() -> None:
    with pytest.raises(ScheduleError, match=r"0 <= low <= high.*not low=5, high=1"):
        day_night(5, 1, 10)
    with pytest.raises(ScheduleError, match=r"inside the period of 10 s.*Burst\(at=8, lasts=5"):
        day_night(1, 5, 10, bursts=[Burst(8, 5, 2)])
