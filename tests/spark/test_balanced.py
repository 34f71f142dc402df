"""A balanced stream passes over a replica before which much waits, and loses, doubles or reorders nothing."""

import os
import time
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

import penstock as ps
from penstock.flow.spark_conf import LINKS
from penstock.testing.collector import Collector
from tests.spark.items import Item, assert_exactly_once, assert_ordered, numbered
from tests.spark.test_crashes import wait_for

pytestmark = [
    pytest.mark.spark,
    pytest.mark.skipif(
        os.environ.get("PENSTOCK_TEST_SHUFFLE", LINKS) != LINKS,
        reason="nobody knows what waits in Spark's shuffle",
    ),
]
COUNT = 4000 if "PENSTOCK_TEST_MASTER" in os.environ else 800
"""Executors of their own take longer to hear of a scale-up."""


class FirstIsHeld:
    """The first replica takes an item, and stays with it until the gate is there."""

    def __init__(self, place: Path) -> None:
        self.began, self.gate = place / "began", place / "gate"

    def open(self, context: Any) -> None:
        self.replica = context.replica

    def process(self, item: Item, out: Any) -> None:
        if self.replica == 0:
            self.began.touch()
            while not self.gate.exists():
                time.sleep(0.01)
        out((self.replica, item))


@pytest.mark.parametrize(("balanced", "least", "most"), [(True, 0.95, 1.0), (False, 0.45, 0.55)])
def test_after_a_scale_up_new_items_pass_over_what_waits(
    spark: SparkSession,
    collector: Collector,
    tmp_path: Path,
    balanced: bool,
    least: float,
    most: float,
) -> None:
    task = FirstIsHeld(tmp_path)
    flow = ps.Flow("relieved")
    source = flow.source(numbered(COUNT, rate=500), name="numbers")
    wired = source.balanced() if balanced else source.round_robin()
    held = wired.task(task, name="held", parallelism=ps.elastic(1, 2, initial=1, pool=2))
    held.sink(collector, name="out")
    job = ps.run(flow)
    job.set_measure_every("0.5 s")

    def all_went_on() -> bool:
        """All is sent, and nothing waits before the second replica."""
        queues = job.snapshot(1.0).stream("numbers->held").channels or []
        idle = all(channel.receiver == 0 for channel in queues)
        return job.metrics().tasks["numbers"].items_out == COUNT and idle

    try:
        wait_for(task.began.exists, 90)
        time.sleep(0.2)
        job.set_active("held", 2)
        wait_for(all_went_on, 90)
    finally:
        task.gate.touch()
        ended = job.await_termination(60)
    assert ended
    found = collector.items()
    assert_exactly_once([item for _, item in found], COUNT)
    by_replica = [[item for by, item in found if by == replica] for replica in (0, 1)]
    for items in by_replica:
        assert_ordered(items)
    begins = by_replica[1][0].index
    assert 50 < begins < COUNT // 2, "much waits, and much is to come"
    assert least <= len(by_replica[1]) / (COUNT - begins) <= most
