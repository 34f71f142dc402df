"""Rate curves and the due times that follow them."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.sim.distributions import Deterministic, Exponential
from penstock.sim.load import Curve, DueTimes, LoadError

steps = st.lists(st.tuples(st.floats(0.5, 5), st.floats(0, 200)), min_size=1, max_size=6)


def all_due(curve: Curve, due: DueTimes, until_s: float, cuts: list[float]) -> np.ndarray:
    edges = sorted(
        {0.0, until_s, *(c for c in cuts if c < until_s), *(t for t in curve.from_s if t < until_s)}
    )
    pieces = [due.until(a, b) for a, b in itertools.pairwise(edges)]
    return np.concatenate(pieces) if pieces else np.empty(0)


@given(steps, st.floats(0, 30))
def test_area_is_the_integral_of_the_steps(pieces: list[tuple[float, float]], time_s: float) -> None:
    curve = Curve.steps(pieces)
    left, area = time_s, 0.0
    for number, (duration_s, value) in enumerate(pieces):
        lasts = math.inf if number == len(pieces) - 1 else duration_s
        area += min(left, lasts) * value
        left = max(0.0, left - lasts)
    assert curve.area_until(time_s) == pytest.approx(area, abs=1e-6)


@given(steps, st.lists(st.floats(0.01, 20), max_size=5))
def test_paced_items_are_due_when_the_integral_is_whole(
    pieces: list[tuple[float, float]], cuts: list[float]
) -> None:
    curve = Curve.steps(pieces)
    until_s = sum(duration_s for duration_s, _ in pieces)
    due = all_due(curve, DueTimes(curve, Deterministic(), np.random.default_rng(0)), until_s, cuts)
    assert (np.diff(due) >= 0.0).all()
    assert abs(due.size - curve.area_until(until_s)) <= 1.0 + 1e-6
    areas = np.array([curve.area_until(time) for time in due])
    assert areas == pytest.approx(np.arange(1, due.size + 1), abs=1e-6)


def test_poisson_items_come_at_the_rate_of_the_curve() -> None:
    curve = Curve.steps([(10.0, 1_000.0), (10.0, 5_000.0)])
    due = all_due(curve, DueTimes(curve, Exponential(), np.random.default_rng(1)), 20.0, [3.0, 12.5])
    assert np.count_nonzero(due < 10.0) == pytest.approx(10_000, rel=0.03)
    assert np.count_nonzero(due >= 10.0) == pytest.approx(50_000, rel=0.02)
    gaps = np.diff(due[due >= 10.0])
    assert gaps.var() / gaps.mean() ** 2 == pytest.approx(1.0, rel=0.05)


@pytest.mark.parametrize(
    ("begins", "values", "message"),
    [
        ((), (), "curve: give as many start times as values, at least one"),
        ((1.0,), (5.0,), "curve: start times must begin with 0 and increase"),
        ((0.0, 0.0), (5.0, 6.0), "curve: start times must begin with 0 and increase"),
        ((0.0,), (-1.0,), "curve: values must be finite and not negative"),
    ],
)
def test_impossible_curves_are_refused(
    begins: tuple[float, ...], values: tuple[float, ...], message: str
) -> None:
    with pytest.raises(LoadError) as refused:
        Curve(begins, values)
    assert str(refused.value) == message
