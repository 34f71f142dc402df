"""What a turn of `bench latency --against` says of its starts."""

import numpy
import pytest

from penstock.bench.latency_summary import LatencySummary
from penstock.bench.turns import averages


def summary(p50_ms: float) -> LatencySummary:
    found = LatencySummary.of(numpy.full(9, p50_ms), lost=0, duplicated=0)
    assert found is not None
    return found


def test_figures_are_means_over_the_starts() -> None:
    assert averages([summary(0.4), summary(0.6)])["p50_ms"] == pytest.approx(0.5)


def test_a_start_that_showed_nothing_is_not_left_out_of_the_mean() -> None:
    assert averages([summary(0.4), None]) == {"p50_ms": None, "mean_ms": None, "p99_ms": None}
