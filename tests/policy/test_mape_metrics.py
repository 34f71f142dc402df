"""U, Q, E and delta."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.policy.mape_metrics import MapeMetrics, Weights, measure, missing_fields
from penstock.stats.snapshot import TaskStats

WEIGHTS = Weights(0.45, 0.45, 0.1)


def task(**fields: Any) -> TaskStats:
    known: dict[str, Any] = {
        "processed_total": 1000.0,
        "backlog_total": 4000.0,
        "service_ms": 10.0,
        "baseline_service_ms": 8.0,
    }
    return TaskStats(kind="task", parallelism=2, elastic=True, **{**known, **fields})


def test_equations() -> None:
    metrics = measure(task(), 25)
    assert metrics is not None
    assert metrics.utilization == pytest.approx(1000 * 0.010 / (2 * 25))
    assert metrics.execution == pytest.approx(0.2)
    assert metrics.queue == pytest.approx(0.75)
    assert metrics.delta(WEIGHTS) == pytest.approx(0.45 * 0.2 + 0.45 * 0.75 + 0.1 * 0.2)


def test_an_empty_or_short_queue_counts_nothing() -> None:
    assert measure(task(backlog_total=0.0), 25) == measure(task(backlog_total=900.0), 25)


def test_faster_than_the_baseline_counts_as_the_baseline() -> None:
    metrics = measure(task(service_ms=4.0), 25)
    assert metrics is not None
    assert metrics.execution == 0
    assert metrics.utilization == pytest.approx(1000 * 0.008 / 50)


def test_nothing_processed_is_no_load_but_a_full_queue() -> None:
    idle = task(processed_total=0.0, service_ms=None)
    assert measure(idle, 25) == MapeMetrics(0.0, 1.0, 0.0)


@pytest.mark.parametrize("name", ["processed_total", "backlog_total", "service_ms", "baseline_service_ms"])
def test_missing_fields_are_named_and_give_nothing(name: str) -> None:
    assert missing_fields(task(**{name: None})) == [name]
    assert measure(task(**{name: None}), 25) is None


@given(
    processed=st.floats(0, 1e9),
    backlog=st.floats(0, 1e9),
    service=st.floats(0, 1e4),
    baseline=st.floats(0, 1e4),
    window=st.floats(0.1, 100),
)
def test_every_metric_is_a_share(
    processed: float, backlog: float, service: float, baseline: float, window: float
) -> None:
    measured = task(
        processed_total=processed, backlog_total=backlog, service_ms=service, baseline_service_ms=baseline
    )
    metrics = measure(measured, window)
    assert metrics is not None
    for value in (metrics.utilization, metrics.queue, metrics.execution, metrics.delta(WEIGHTS)):
        assert 0 <= value <= 1 + 1e-12
