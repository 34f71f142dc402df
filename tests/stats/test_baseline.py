"""The baseline service time and the estimated queue."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.stats.baseline import SAMPLES, Baseline, estimated_queue


def test_unknown_until_there_are_enough_samples() -> None:
    baseline = Baseline()
    for _ in range(SAMPLES - 1):
        baseline.add(2.0)
    assert baseline.service_ms is None
    baseline.add(2.0)
    assert baseline.service_ms == 2.0


def test_outliers_are_left_out_and_later_samples_too() -> None:
    baseline = Baseline()
    for value in [1.0] * (SAMPLES - 1) + [100.0, 50.0, 50.0]:
        baseline.add(value)
    assert baseline.service_ms == pytest.approx(1.0)


@given(st.lists(st.floats(0, 1e6), min_size=SAMPLES, max_size=SAMPLES))
def test_the_baseline_is_one_of_the_usual_values(values: list[float]) -> None:
    baseline = Baseline()
    for value in values:
        baseline.add(value)
    assert baseline.service_ms is not None
    assert min(values) - 1e-6 <= baseline.service_ms <= max(values) + 1e-6


def test_the_queue_by_hand() -> None:
    assert estimated_queue(10, arrived=100, executed=80) == 26
    assert estimated_queue(0, arrived=10, executed=10) == 0


@given(st.integers(0, 1000), st.integers(0, 1000), st.integers(0, 2000))
def test_the_queue_is_never_negative_nor_overestimated(queue: int, arrived: int, executed: int) -> None:
    assert 0 <= estimated_queue(queue, arrived, executed) <= max(0, queue + arrived - executed)
