"""`job.constraints()`: what was measured, for a sequence in the middle of a flow, too."""

import time

import pytest
from pyspark.sql import SparkSession

import penstock as ps
from tests.spark.items import Item, make_item

pytestmark = pytest.mark.spark

PATIENCE_S = 30.0


def slow(item: Item) -> Item:
    time.sleep(0.002)
    return item


def drop(item: Item) -> None:
    """The end of the flow."""


def test_mean_percentiles_and_share_held(spark: SparkSession) -> None:
    """Two tasks of 2 ms, the second constrained with the way to it; the bound that cannot be kept is not."""
    flow = ps.Flow("watched")
    numbers = flow.source(ps.paced(make_item, 150), name="numbers")
    numbers.map(slow, name="a").map(slow, name="b").sink(drop, name="drop")
    flow.constrain("5 s", ["a->b", "b"], name="wide", window="2 s")
    flow.constrain("0.5 ms", ["a"], name="narrow", window="2 s")
    job = ps.run(flow, sampling=1.0, measure_every="0.5 s")
    try:
        assert [(one.name, one.mean_ms, one.intervals) for one in job.constraints()] == [
            ("wide", None, 0),
            ("narrow", None, 0),
        ]
        deadline_s = time.monotonic() + PATIENCE_S
        while not all(one.intervals >= 3 and one.p99_ms for one in job.constraints()):
            assert time.monotonic() < deadline_s, job.constraints()
            time.sleep(0.2)
        wide, narrow = job.constraints()
    finally:
        job.stop()
    assert (wide.bound_ms, wide.window_s, wide.held, wide.share_held) == (5000.0, 2.0, True, 1.0)
    assert (narrow.held, narrow.share_held) == (False, 0.0)
    for one in (wide, narrow):
        assert one.mean_ms is not None
        assert one.p95_ms is not None
        assert one.p99_ms is not None
        assert one.mean_ms > 2.0
        assert 2.0 < one.p95_ms <= one.p99_ms
    assert (narrow.p95_ms or 0.0) < (wide.p99_ms or 0.0), ()
