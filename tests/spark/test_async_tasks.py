"""Async bodies on Spark: nothing is lost or out of order, at commits and when a worker is killed."""

import asyncio
import os
import signal
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

import penstock as ps
from penstock.testing.collector import Collector
from tests.spark.items import Item, assert_exactly_once, assert_ordered, expected, numbered

pytestmark = pytest.mark.spark


class Fetches:
    """Waits longer for some items; kills its process once, with calls open, if it is told to."""

    def __init__(self, witness: Path | None = None) -> None:
        self.witness = witness

    async def open(self, context: Any) -> None:
        await asyncio.sleep(0)

    async def process(self, item: Item, out: Any) -> None:
        await asyncio.sleep(0.001 * (item.index % 7))
        if item.index == 500 and self.witness is not None and not self.witness.exists():
            self.witness.touch()
            os.kill(os.getpid(), signal.SIGKILL)
        out(item)


def test_order_is_kept_over_commits_and_nothing_is_lost(spark: SparkSession, collector: Collector) -> None:
    flow = ps.Flow("fetching")
    fetched = flow.source(numbered(3000, rate=1500), name="numbers").batched("5 ms").task(Fetches)
    fetched.batched("5 ms").sink(collector, name="out")
    job = ps.run(flow, commit="1 s")
    assert job.await_termination(60)
    assert_exactly_once(collector.items(), 3000)
    assert_ordered(collector.items())
    assert job.metrics().tasks["Fetches"].items_in == 3000


@pytest.mark.parametrize("ordered", [True, False])
def test_calls_of_a_killed_worker_are_made_again(
    spark: SparkSession, collector: Collector, tmp_path: Path, ordered: bool
) -> None:
    flow = ps.Flow("phoenix")
    source = flow.source(numbered(1500, rate=1500), name="numbers").batched("5 ms")
    fetched = source.task(Fetches(tmp_path / "died"), name="dies", ordered=ordered, concurrency=10)
    fetched.batched("30 ms").sink(collector, name="out")
    job = ps.run(flow)
    assert job.await_termination(60)
    seen = Counter(collector.items())
    assert seen.keys() == expected(1500)
    assert max(seen.values()) <= 2
    assert job.metrics().tasks["dies"].restarts == 1
