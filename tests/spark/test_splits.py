"""Sources with more splits than replicas, and replicas of a source that change at a boundary."""

import os
import signal
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

import penstock as ps
from penstock.epochs.commits import last_positions
from penstock.testing.collector import Collector
from penstock.wire.orders import Position
from tests.spark.items import assert_exactly_once, assert_ordered, numbered, wait_for_items
from tests.spark.test_crashes import wait_for

pytestmark = pytest.mark.spark


COUNT = 50_000 if "PENSTOCK_TEST_MASTER" in os.environ else 10_000
"""Executors of their own keep a worker for some seconds, in case that its replica comes back."""


def flow_of(collector: Collector, count: int, replicas: Any) -> ps.Flow:
    flow = ps.Flow("split", ids=True)
    source = flow.source(numbered(count, rate=2000, partitions=5), name="numbers", replicas=replicas)
    source.sink(collector, name="out")
    return flow


def positions(checkpoint: Path) -> dict[str, Position]:
    return last_positions(checkpoint)["numbers"]


def test_replicas_of_a_source_grow_and_shrink_at_boundaries(
    spark: SparkSession, collector: Collector, tmp_path: Path
) -> None:
    job = ps.run(flow_of(collector, COUNT, ps.elastic(1, 5, initial=2)), checkpoint=tmp_path)
    for replicas, seen in [(5, 500), (1, 1500), (3, 2500)]:
        wait_for_items(collector, seen)
        job.set_active("numbers", replicas)
        metrics = job.metrics().tasks["numbers"]
        assert (metrics.active, metrics.pool) == (replicas, replicas)
        assert positions(tmp_path).keys() == {f"{number}/5" for number in range(5)}
    wait_for(lambda: len(job.metrics().tasks["numbers"].processes) == 3)  # those of before have left
    os.kill(job.metrics().tasks["numbers"].processes[0], signal.SIGKILL)
    assert job.await_termination(60)
    assert_exactly_once({*collector.items()}, COUNT, 5)
    assert sum(one.ordinal for one in positions(tmp_path).values()) == COUNT


def test_a_checkpoint_goes_on_with_other_replicas(
    spark: SparkSession, collector: Collector, tmp_path: Path
) -> None:
    """Also one of the time when every split had a replica of its own: its positions look the same."""
    job = ps.run(flow_of(collector, 3000, None), checkpoint=tmp_path)
    wait_for_items(collector, 500)
    job.stop()
    assert sum(one.ordinal for one in positions(tmp_path).values()) == len(collector.items())
    assert ps.run(flow_of(collector, 3000, 2), checkpoint=tmp_path).await_termination(60)
    items = collector.items()
    assert_exactly_once(items, 3000, 5)
    assert_ordered(items)
