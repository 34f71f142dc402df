"""The fitted Kingman model: it reproduces what was measured, and its inverses are exact."""

import math

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from penstock.policy.scaling_model import LARGEST, FitLimits, QueueWait, fit_queue_wait

positive = st.floats(0.001, 1000)
models = st.builds(QueueWait, st.floats(0.001, 1e4), st.floats(0.01, 200))


def measured(
    load: float, queue_wait_ms: float, replicas: int = 10, limits: FitLimits | None = None
) -> QueueWait:
    return fit_queue_wait(
        service_ms=2.0,
        interarrival_ms=2.0 / load,
        service_cv=0.5,
        interarrival_cv=1.0,
        queue_wait_ms=queue_wait_ms,
        replicas=replicas,
        limits=limits,
    )


def test_kingman_for_an_m_m_1_queue() -> None:
    # W = S rho / (1 - rho) when both coefficients of variation are 1.
    model = fit_queue_wait(
        service_ms=1.0,
        interarrival_ms=2.0,
        service_cv=1.0,
        interarrival_cv=1.0,
        queue_wait_ms=1.0,
        replicas=1,
    )
    assert model.fit == pytest.approx(1.0)
    assert model.wait_ms(1) == pytest.approx(1.0)
    assert model.wait_ms(2) == pytest.approx(1.0 * 0.25 / 0.75)


@given(load=st.floats(0.01, 0.98), wait=positive, replicas=st.integers(1, 500))
def test_the_fit_gives_back_the_measured_wait(load: float, wait: float, replicas: int) -> None:
    assert measured(load, wait, replicas).wait_ms(replicas) == pytest.approx(wait)


@given(load=st.floats(0.01, 0.98), wait=positive)
def test_limits_clamp_the_fit(load: float, wait: float) -> None:
    assert 0.8 <= measured(load, wait, limits=FitLimits(0.8, 1.2)).fit <= 1.2


def test_nothing_to_fit_when_nothing_varies() -> None:
    model = fit_queue_wait(
        service_ms=1.0,
        interarrival_ms=2.0,
        service_cv=0.0,
        interarrival_cv=0.0,
        queue_wait_ms=5.0,
        replicas=1,
    )
    assert model.fit == 1.0
    assert model.wait_ms(1) == 0.0


def test_too_few_replicas_wait_for_ever() -> None:
    model = QueueWait(1.0, 3.0)
    assert math.isinf(model.wait_ms(3))
    assert math.isinf(model.gain_ms(2))
    assert model.smallest_stable() == 4


@given(models, st.integers(1, 1000))
def test_wait_and_gain_fall_with_every_replica(model: QueueWait, more: int) -> None:
    replicas = model.smallest_stable() + more
    assert model.wait_ms(replicas) < model.wait_ms(replicas - 1)
    assert model.gain_ms(replicas) < model.gain_ms(replicas - 1)
    expected = model.wait_ms(replicas) - model.wait_ms(replicas + 1)
    assert model.gain_ms(replicas) == pytest.approx(expected, rel=1e-6, abs=1e-12)


@given(models, st.floats(1e-6, 1e3))
def test_replicas_for_gain_is_the_smallest(model: QueueWait, gain_ms: float) -> None:
    replicas = model.replicas_for_gain(gain_ms)
    assume(replicas < LARGEST)
    assert model.gain_ms(replicas) <= gain_ms
    assert replicas == model.smallest_stable() or model.gain_ms(replicas - 1) > gain_ms


@given(st.floats(0.0, 500), st.floats(0.05, 0.99))
def test_replicas_for_utilization_is_the_smallest(busy: float, utilization: float) -> None:
    replicas = QueueWait(1.0, busy).replicas_for_utilization(utilization)
    assert busy / replicas <= utilization * (1 + 1e-9)
    assert replicas == 1 or busy / (replicas - 1) > utilization


def test_utilization_of_exactly_the_limit_is_allowed() -> None:
    assert QueueWait(1.0, 9.0).replicas_for_utilization(0.9) == 10
