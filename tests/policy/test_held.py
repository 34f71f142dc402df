"""Constraints are judged over their windows, whatever the intervals of the snapshots."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from penstock.policy.held import Judge
from penstock.stats.snapshot import ConstraintSpec, Snapshot, StreamStats, TaskStats


def seen(
    took_ms: float | None, interval_s: float = 1.0, items: float | None = 10.0, **constraint: object
) -> Snapshot:
    """One interval of source -> sink; the bound is 20 ms over 5 s."""
    spec = ConstraintSpec(name="c", sequence=["source->sink"], latency_ms=20, window_s=5)
    rate = None if items is None else items / interval_s
    return Snapshot(
        interval_s=interval_s,
        tasks={
            "source": TaskStats(kind="source", parallelism=1, rate_total=rate),
            "sink": TaskStats(kind="sink", parallelism=1, processed_total=items),
        },
        streams=[StreamStats(origin="source", receiver="sink", latency_ms=took_ms)],
        constraints=[replace(spec, **constraint)],
    )


def held(*snapshots: Snapshot) -> list[bool | None]:
    judge = Judge()
    return [judge.verdicts(one)["c"].held for one in snapshots]


def test_a_short_interval_over_the_bound_does_not_break_a_window_that_holds() -> None:
    judge = Judge()
    values = [judge.verdicts(seen(ms))["c"].value_ms for ms in (10, 10, 50, 10, 10, 10, 10, 10)]
    assert values == pytest.approx([10, 10, 70 / 3, 20, 18, 18, 18, 10])
    assert held(*map(seen, (10, 10, 50, 10, 10))) == [True, True, False, True, True]


def test_intervals_count_by_their_items() -> None:
    assert held(seen(10, items=1.0), seen(30, items=9.0)) == [True, False]
    assert held(seen(10, items=9.0), seen(30, items=1.0)) == [True, True]


@pytest.mark.parametrize("interval_s", [4.99, 5.0, 60.0])
def test_an_interval_as_long_as_the_window_is_judged_by_itself(interval_s: float) -> None:
    shown = [seen(ms, interval_s) for ms in (10, 30, 10)]
    assert held(*shown) == [True, False, True]


def test_without_a_window_every_interval_is() -> None:
    assert held(*(seen(ms, window_s=None) for ms in (10, 30, 10))) == [True, False, True]


def test_what_was_sent_and_not_measured_is_not_held() -> None:
    assert held(seen(None)) == [False]
    assert held(seen(None, items=None)) == [None]
    assert held(seen(10), seen(None)) == [True, True], "the window was measured, if not its last second"
    assert held(seen(10, 5), seen(None, 5)) == [True, False]


def test_another_bound_begins_a_new_window() -> None:
    wide = [seen(30, latency_ms=40.0), seen(30, latency_ms=40.0)]
    assert held(*wide, seen(10)) == [True, True, True]
    assert held(*wide, seen(25)) == [True, True, False]


def test_percentiles_are_judged_by_the_worst_interval_and_unknown_ones_not_at_all() -> None:
    def tail(p95_ms: float | None) -> Snapshot:
        return seen(1.0, statistic="p95", p95_ms=p95_ms)

    assert held(tail(10), tail(30), tail(10)) == [True, False, False]
    assert held(tail(None)) == [None]
    assert held(seen(1.0, statistic="p99", p99_ms=25.0)) == [False]
    assert held(seen(1.0, statistic="p50")) == [None]


def test_of_items_that_are_counted_a_percentile_is_judged_over_the_whole_window() -> None:
    def tail(late: int, samples: int = 100, statistic: str = "p95") -> Snapshot:
        return seen(1.0, statistic=statistic, p95_ms=9.0, p99_ms=9.0, samples=samples, late=late)

    assert held(tail(5), tail(6), tail(4)) == [True, False, True]
    assert held(tail(9), tail(0)) == [False, True], "9 of 200"
    assert held(tail(9), tail(0, samples=10)) == [False, False], "items count, not intervals"
    assert held(tail(1, statistic="p99"), tail(2, statistic="p99")) == [True, False]
    unknown = seen(1.0, statistic="p95", samples=3, late=3)
    assert held(unknown, tail(0, samples=20)) == [None, False], "few items tell nothing, but count"


def test_verdicts_are_written_into_snapshots() -> None:
    judge = Judge()
    judge.judged(seen(10))
    (constraint,) = judge.judged(seen(40)).constraints
    assert (constraint.mean_ms, constraint.held) == (25.0, False)
    (tail,) = Judge().judged(seen(1.0, statistic="p95", p95_ms=3.0)).constraints
    assert (tail.mean_ms, tail.held) == (None, True)


@given(st.lists(st.floats(0, 100), min_size=1, max_size=30), st.floats(0.2, 10))
def test_the_value_lies_between_the_least_and_the_most_of_the_window(
    latencies_ms: list[float], interval_s: float
) -> None:
    judge = Judge()
    covered = max(1, round(5 / interval_s + 1.5))
    for number, latency_ms in enumerate(latencies_ms):
        value_ms = judge.verdicts(seen(latency_ms, interval_s))["c"].value_ms
        recent = latencies_ms[max(0, number + 1 - covered) : number + 1]
        assert value_ms is not None
        assert min(recent) - 1e-9 <= value_ms <= max(recent) + 1e-9
