"""What is expected: steps are believed, noise is not, and head-room is what has been seen."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.policy.penstock.forecast import History, forecast, is_luck, learnt, level, slope, surprise


def history(*rates: float, ahead: int = 1) -> History:
    known = History()
    for rate in rates:
        known = learnt(known, rate, 5.0, ahead)
    return known


def test_a_level_is_averaged_over_what_is_luck_and_a_step_is_believed_at_once() -> None:
    assert level([100.0, 104.0, 98.0, 102.0], 5.0) == 101.0
    assert level([100.0, 104.0, 98.0, 202.0], 5.0) == 202.0


def test_a_trend_is_the_line_of_the_last_and_one_odd_value_does_not_move_it() -> None:
    assert slope([100.0, 150.0, 200.0, 250.0, 300.0], 5.0) == 50.0
    assert 45.0 < slope([100.0, 150.0, 200.0, 190.0, 300.0], 5.0) < 52.0
    assert slope([100.0, 150.0, 90.0, 160.0, 100.0], 5.0) == 0.0
    assert slope([100.0, 102.0, 104.0, 106.0, 108.0], 5.0) == 0.0, "that may be luck"
    assert slope([100.0, 300.0], 5.0) == 0.0


def test_a_climb_is_met_before_it_comes() -> None:
    climbs = history(100, 150, 200, 250, 300)
    expected = forecast(climbs, 5.0, 2, None)
    assert expected.trend
    assert expected.expected_per_s == 400.0


def test_without_a_forecast_what_comes_is_what_came_last() -> None:
    climbs = history(100, 150, 400, 250, 300)
    last = forecast(climbs, 5.0, 2, 0.99, is_last=True)
    assert last.expected_per_s == 300.0
    assert last.planned_per_s == 400.0, "head-room is another part"


def test_noise_is_not_taken_for_a_trend() -> None:
    noise = [100.0 + number * 7919 % 101 for number in range(60)]
    known = [history(*noise[: 1 + number]) for number in range(20, 60)]
    assert sum(forecast(one, 5.0, 1, None).trend for one in known) <= 2


def test_a_step_is_no_trend() -> None:
    assert not forecast(history(100, 101, 300), 5.0, 1, None).trend


def test_headroom_is_the_surprise_of_late_and_never_above_the_most_seen() -> None:
    spiky = history(100, 101, 300, 99, 100, 100)
    assert max(spiky.surprises) == pytest.approx(3.0, rel=0.02)
    assert forecast(spiky, 5.0, 1, 0.99).planned_per_s == pytest.approx(300.0, rel=0.02)
    at_the_peak = history(100, 101, 300, 99, 100, 300)
    assert forecast(at_the_peak, 5.0, 1, 0.99).planned_per_s < 310.0
    assert forecast(spiky, 5.0, 1, 0.3).planned_per_s < 110.0
    assert forecast(spiky, 5.0, 1, None).planned_per_s == forecast(spiky, 5.0, 1, None).expected_per_s


def test_a_fall_counts_as_the_rise_that_would_undo_it() -> None:
    assert list(history(300, 300, 100).surprises) == pytest.approx([1.0, 3.0], rel=0.05)


def test_what_rises_for_the_first_time_may_rise_further_before_replicas_are_there() -> None:
    rises = history(100, 100, 180)
    assert forecast(rises, 5.0, 1, 0.99).planned_per_s < 190.0
    assert forecast(rises, 5.0, 2, 0.99).planned_per_s == 270.0


def test_luck_is_no_surprise() -> None:
    assert set(history(100, 104, 97, 102, 99).surprises) == {1.0}


def test_a_slow_change_counts_after_some_intervals() -> None:
    assert level([100.0] * 30 + [115.0], 5.0) < 101.0, "that may be luck"
    assert level([100.0] * 30 + [115.0] * 4, 5.0) == 115.0


def test_where_the_last_intervals_may_be_one_level_there_is_no_trend() -> None:
    """Five intervals that happen to rise, after many that did not."""
    calm = [130.0 + number * 7919 % 13 - 6 for number in range(40)]
    rises = [120.0, 125.0, 131.0, 137.0, 143.0]
    assert slope(rises, 5.0) == 0.0
    assert slope([*calm, *rises], 5.0) == 0.0
    assert slope([*calm, 130.0, 145.0, 160.0, 175.0, 190.0], 5.0) == 15.0


@given(st.floats(1.0, 1_000.0), st.floats(1.0, 1_000.0), st.floats(0.5, 60.0))
def test_a_surprise_is_what_luck_does_not_explain(one: float, other: float, interval_s: float) -> None:
    """Whichever of the two came and was expected, never less than 1 and never more than their ratio."""
    found = surprise(one, other, interval_s)
    assert found == surprise(other, one, interval_s)
    assert 1.0 <= found <= max(one, other) / min(one, other) * (1.0 + 1e-9)
    assert (found == 1.0) >= is_luck(one, other, interval_s)
