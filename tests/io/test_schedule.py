"""Due times: monotone, the exact inverse of the integral, and independent of how they are asked for."""

import math
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.io.schedule import NS_PER_S, Schedule, ScheduleError, as_schedule, constant, steps

RATES = st.one_of(st.just(0.0), st.floats(0.5, 50_000))
SPANS = st.floats(0.01, 100)


@st.composite
def schedules(draw: st.DrawFn) -> Schedule:
    segments = draw(st.lists(st.tuples(SPANS, RATES), min_size=1, max_size=6))
    segments.append((draw(SPANS), draw(st.floats(0.5, 50_000))))
    order = draw(st.permutations(segments))
    spans, rates = zip(*order, strict=True)
    return Schedule(spans, rates, repeats=draw(st.booleans()))


def existing(schedule: Schedule, index: int) -> int:
    total = schedule.total_items
    return index if total is None else index % total


@given(schedules(), st.integers(0, 100_000), st.integers(1, 5), st.integers(1, 50))
def test_due_times_never_decrease(schedule: Schedule, first: int, stride: int, count: int) -> None:
    total = schedule.total_items
    first = existing(schedule, first)
    if total is not None:
        count = min(count, len(range(first, total, stride)))
    due = schedule.due_ns(first, stride, count)
    assert len(due) == count
    assert all(earlier <= later for earlier, later in pairwise(due))


@given(schedules(), st.integers(0, 100_000), st.integers(1, 5), st.integers(1, 50))
def test_a_due_time_does_not_depend_on_the_call_that_asks(
    schedule: Schedule, first: int, stride: int, count: int
) -> None:
    total = schedule.total_items
    first = existing(schedule, first)
    if total is not None:
        count = min(count, len(range(first, total, stride)))
    together = schedule.due_ns(first, stride, count)
    alone = [round(schedule.due_s(first + n * stride) * NS_PER_S) for n in range(count)]
    assert together == alone


@given(schedules(), st.integers(0, 100_000))
def test_the_due_time_is_the_inverse_of_the_integral(schedule: Schedule, index: int) -> None:
    index = existing(schedule, index)
    assert schedule.items_by(schedule.due_s(index)) == pytest.approx(index, abs=1e-5, rel=1e-9)


@given(schedules(), st.floats(0, 500))
def test_the_integral_matches_the_rate(schedule: Schedule, time_s: float) -> None:
    period_s = schedule.starts_s[-1]
    whole = math.floor(time_s / period_s) if schedule.repeats else 0
    rest_s = time_s - whole * period_s
    expected = whole * sum(
        span * rate for span, rate in zip(schedule.spans_s, schedule.rates_per_s, strict=True)
    )
    for begin, span, rate in zip(schedule.starts_s, schedule.spans_s, schedule.rates_per_s, strict=False):
        expected += rate * min(max(rest_s - begin, 0.0), span)
    assert schedule.items_by(time_s) == pytest.approx(expected, rel=1e-9, abs=1e-6)


@given(schedules(), st.floats(0, 500))
def test_rate_at_is_the_slope_of_the_integral(schedule: Schedule, time_s: float) -> None:
    within = math.fmod(time_s, schedule.starts_s[-1]) if schedule.repeats else time_s
    if any(abs(edge - within) < 1e-3 for edge in schedule.starts_s):
        return  # the slope changes here
    slope = (schedule.items_by(time_s + 1e-4) - schedule.items_by(time_s)) / 1e-4
    assert schedule.rate_at(time_s) == pytest.approx(slope, rel=1e-3, abs=0.5)


def test_constant_is_k_over_rate() -> None:
    schedule = constant(4)
    assert schedule.due_ns(0, 1, 5) == [0, 250_000_000, 500_000_000, 750_000_000, 1_000_000_000]
    assert schedule.total_items is None
    assert schedule.rate_at(1e6) == 4


def test_steps_follow_each_other_and_end() -> None:
    schedule = steps([("1 s", 2), (0.5, 0), ("1 s", 4)])
    assert [schedule.due_s(k) for k in range(7)] == [0, 0.5, 1.5, 1.75, 2.0, 2.25, math.inf]
    assert schedule.total_items == 6
    assert [schedule.rate_at(t) for t in (0, 1.2, 1.5, 2.5)] == [2, 0, 4, 0]


def test_items_by_stops_at_the_end_and_starts_at_zero() -> None:
    schedule = steps([(1, 10)])
    assert schedule.items_by(100) == 10
    assert schedule.items_by(-1) == 0


def test_a_number_is_a_constant_rate() -> None:
    assert as_schedule(3) == constant(3)
    assert as_schedule(constant(3)) == constant(3)


@pytest.mark.parametrize(
    ("spans", "rates", "message"),
    [
        ((), (), "a schedule needs at least one segment, and a rate for each"),
        ((0.0,), (1.0,), "segment 0 of the schedule lasts 0.0 s; it must last longer than 0 s"),
        ((1.0,), (-1.0,), "segment 0 has the rate -1.0; a rate is a finite number >= 0 of items/s"),
        ((1.0,), (math.nan,), "segment 0 has the rate nan; a rate is a finite number >= 0 of items/s"),
        ((math.inf, 1.0), (1.0, 1.0), "only the last segment of a schedule that does not repeat may last"),
        ((1.0, 2.0), (0.0, 0.0), "all rates of the schedule are 0: no item would ever be due"),
    ],
)
def test_refused_schedules(spans: tuple[float, ...], rates: tuple[float, ...], message: str) -> None:
    with pytest.raises(ScheduleError) as caught:
        Schedule(spans, rates)
    assert str(caught.value).startswith(message)
