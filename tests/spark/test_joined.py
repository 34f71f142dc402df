"""Items that are shipped at once share envelopes while their receiver is behind; none is lost or passed."""

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
COUNT = 50_000
SLOW_S = 0.0002
MANY = 4
"""In an envelope, in the mean."""


class Slow:
    """Is slow until the gate is there; what came before anybody heard of that is worked off meanwhile."""

    def __init__(self, place: Path) -> None:
        self.gate = place / "gate"

    def process(self, item: Item, out: Any) -> None:
        if not self.gate.exists():
            time.sleep(SLOW_S)
        out(item)


def test_items_share_envelopes_while_their_receiver_is_behind(
    spark: SparkSession, collector: Collector, tmp_path: Path
) -> None:
    task = Slow(tmp_path)
    flow = ps.Flow("behind")
    flow.source(numbered(COUNT, rate=1e6), name="numbers").task(task, name="slow").sink(collector, name="out")
    job = ps.run(flow)
    job.set_measure_every("0.5 s")

    def waiting() -> tuple[float, float]:
        channels = job.snapshot(1.0).stream("numbers->slow").channels or []
        queues = [channel.queue for channel in channels if channel.queue is not None]
        return sum(one.items or 0 for one in queues), sum(one.envelopes or 0 for one in queues)

    def share_envelopes() -> bool:
        items, envelopes = waiting()
        return items > max(MANY * envelopes, COUNT // 20)

    try:
        wait_for(share_envelopes, 30)
    finally:
        task.gate.touch()
        ended = job.await_termination(60)
    assert ended
    found = collector.items()
    assert_exactly_once(found, COUNT)
    assert_ordered(found)
