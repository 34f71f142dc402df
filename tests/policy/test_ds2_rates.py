"""True rates: equations 1-6, and what cannot be known."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.policy.ds2_rates import (
    Knowledge,
    observed_output_per_s,
    observed_processing_per_s,
    true_rates,
)
from penstock.stats.snapshot import InstanceStats, TaskStats


def task(**fields: object) -> TaskStats:
    return TaskStats(kind="task", **{"parallelism": 2, **fields})  # type: ignore[arg-type]


def test_sums_true_rates_of_replicas() -> None:
    measured = task(
        instances=[
            InstanceStats(useful_s=1.0, processed=100.0, emitted=50.0),
            InstanceStats(useful_s=4.0, processed=200.0, emitted=300.0),
        ]
    )
    rates = true_rates(measured)
    assert rates.processing_per_s == pytest.approx(150.0)
    assert rates.selectivity == pytest.approx((50 + 75) / 150)


def test_totals_serve_when_not_every_replica_reported() -> None:
    partial = task(
        instances=[InstanceStats(useful_s=1.0, processed=1.0, emitted=1.0)],
        processed_total=400.0,
        emitted_total=800.0,
        useful_s=2.0,
    )
    rates = true_rates(partial)
    assert rates.processing_per_s == pytest.approx(200.0)
    assert rates.selectivity == pytest.approx(2.0)


def test_partial_instances_alone_are_missing_data() -> None:
    assert (
        true_rates(task(instances=[InstanceStats(useful_s=1.0, processed=1.0)])).knowledge
        is Knowledge.MISSING
    )


def test_idle_replica_is_left_out() -> None:
    measured = task(
        instances=[
            InstanceStats(useful_s=0.0, processed=0.0, emitted=0.0),
            InstanceStats(useful_s=2.0, processed=200.0, emitted=200.0),
        ]
    )
    assert true_rates(measured).processing_per_s == pytest.approx(200.0)


@pytest.mark.parametrize(("processed", "useful_s"), [(0.0, 0.0), (5.0, 0.0), (0.0, 3.0)])
def test_nothing_divided_by_nothing_is_idle_not_a_rate(processed: float, useful_s: float) -> None:
    rates = true_rates(task(processed_total=processed, useful_s=useful_s, emitted_total=0.0))
    assert rates.knowledge is Knowledge.IDLE
    assert rates.processing_per_s is None


def test_selectivity_is_known_without_useful_time() -> None:
    rates = true_rates(task(processed_total=10.0, emitted_total=30.0))
    assert rates.knowledge is Knowledge.MISSING
    assert rates.selectivity == pytest.approx(3.0)


def test_output_that_was_not_measured_leaves_selectivity_unknown() -> None:
    rates = true_rates(task(processed_total=10.0, useful_s=1.0))
    assert rates.knowledge is Knowledge.KNOWN
    assert rates.selectivity is None


@given(
    processed=st.floats(1, 1e6),
    share=st.floats(0.01, 1.0),
    replicas=st.integers(1, 20),
    interval_s=st.floats(0.1, 60),
)
def test_observed_rates_never_exceed_true_rates(
    processed: float, share: float, replicas: int, interval_s: float
) -> None:
    measured = task(
        parallelism=replicas, processed_total=processed, emitted_total=processed, useful_s=share * interval_s
    )
    true, observed = true_rates(measured).processing_per_s, observed_processing_per_s(measured, interval_s)
    assert true is not None
    assert observed is not None
    assert observed <= true * (1 + 1e-9)
    assert observed_output_per_s(measured, interval_s) == pytest.approx(observed)
