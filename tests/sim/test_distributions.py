"""Distributions have mean one and the variation they say."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.sim.distributions import (
    Deterministic,
    Distribution,
    DistributionError,
    Empirical,
    Exponential,
    Gamma,
    LogNormal,
    ShiftedExponential,
)

ALL = [
    Deterministic(),
    Exponential(),
    Gamma(0.4),
    Gamma(2.0),
    LogNormal(0.7),
    ShiftedExponential(0.35),
    Empirical((1.0, 2.0, 9.0)),
]


@pytest.mark.parametrize("distribution", ALL, ids=repr)
def test_mean_is_one_and_variation_as_stated(distribution: Distribution) -> None:
    values = distribution.sample(np.random.default_rng(3), 400_000)
    assert values.mean() == pytest.approx(1.0, rel=0.02)
    assert values.var() / values.mean() ** 2 == pytest.approx(distribution.scv, rel=0.05, abs=1e-12)
    assert (values >= 0.0).all()


@given(st.lists(st.floats(0.001, 100), min_size=1, max_size=20))
def test_empirical_draws_only_what_was_measured(values: list[float]) -> None:
    mean = sum(values) / len(values)
    drawn = Empirical(tuple(values)).sample(np.random.default_rng(0), 50)
    known = np.array(values) / mean
    assert all(np.isclose(known, value).any() for value in drawn)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: Gamma(0.0), "Gamma: cv is 0.0; it must be a positive number"),
        (lambda: LogNormal(float("nan")), "LogNormal: cv is nan; it must be a positive number"),
        (lambda: ShiftedExponential(1.5), "ShiftedExponential: cv is 1.5; it can be at most 1"),
        (lambda: Empirical(()), "Empirical: values is empty; give at least one measured value"),
        (lambda: Empirical((-1.0,)), "Empirical: values must be finite, not negative, and not all zero"),
    ],
)
def test_impossible_parameters_are_refused(make: object, message: str) -> None:
    assert callable(make)
    with pytest.raises(DistributionError) as refused:
        make()
    assert str(refused.value) == message
