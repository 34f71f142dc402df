"""Quantiles within the width of a bucket."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.sim.latencies import Latencies


@given(st.lists(st.floats(1e-6, 1e3), min_size=1, max_size=200), st.floats(0.01, 1.0))
def test_a_quantile_is_right_within_one_percent(values: list[float], share: float) -> None:
    latencies = Latencies()
    latencies.add(np.array(values))
    rank = int(np.ceil(share * len(values) - 1e-9))
    expected = sorted(values)[max(0, rank - 1)]
    assert latencies.quantile_ms(share) == pytest.approx(expected * 1000.0, rel=0.011)


@given(st.lists(st.floats(1e-6, 1e3), max_size=200), st.floats(1e-3, 1e6))
def test_those_above_are_counted_within_one_percent(values: list[float], bound_ms: float) -> None:
    latencies = Latencies()
    latencies.add(np.array(values))
    surely, perhaps = (sum(1000.0 * value > bound_ms * off for value in values) for off in (1.011, 0.989))
    assert surely <= latencies.above(bound_ms) <= perhaps


def test_merged_histograms_are_those_of_all_values() -> None:
    values = np.random.default_rng(0).gamma(2.0, 0.01, 1000)
    whole, first, second = Latencies(), Latencies(), Latencies()
    whole.add(values)
    first.add(values[:300])
    second.add(values[300:])
    first.merge(second)
    assert first.count == whole.count == 1000
    assert first.quantile_ms(0.95) == whole.quantile_ms(0.95)


def test_nothing_measured_is_none() -> None:
    assert Latencies().quantile_ms(0.5) is None
