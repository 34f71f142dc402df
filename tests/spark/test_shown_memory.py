"""What the shuffle shows of the memory that rows hold: large ones count once, and from when they may come."""

import os
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

import penstock as ps
from penstock.testing.collector import Collector
from tests.spark.ends import Channel, Ends, wait_for
from tests.spark.huge import COUNT, HUGE_BYTES, huge_flow, shown
from tests.spark.items import expected

pytestmark = pytest.mark.spark


def test_large_rows_between_executors_count_from_their_grant_until_they_are_read(spark: SparkSession) -> None:
    jvm: Any = spark._jvm
    ends, inboxes = Ends(jvm, {}), jvm.org.apache.spark.penstock.Handovers
    inbox, task = ends.inbox(1), getattr(getattr(jvm.org.apache.spark, "TaskContext$"), "MODULE$").empty()
    inboxes.reads(task, inbox)
    try:
        channel = Channel(ends, inbox=inbox)
        channel.put(1, 400)
        wait_for(lambda: inboxes.heldBytes() == 400)
        assert channel.take() == 1
        channel.put(2, 8000)
        wait_for(lambda: inboxes.heldBytes() == 8000)
        ends.reading.largeRows().ask("another channel", 9, 1000, jvm.java.lang.Thread())
        assert inboxes.heldBytes() == 9000, "it may come, and has not"
        assert channel.take() == 2
        assert inboxes.heldBytes() == 1000
        ends.reading.largeRows().release(9, 1000)
        assert inboxes.heldBytes() == 0
    finally:
        task.markTaskCompleted(getattr(getattr(jvm.scala, "None$"), "MODULE$"))
        ends.close()


@pytest.mark.skipif("PENSTOCK_TEST_MASTER" in os.environ, reason="executors have not so much memory")
def test_items_of_63_mib_pass_within_what_is_shown(
    spark: SparkSession, collector: Collector, tmp_path: Path
) -> None:
    gate = tmp_path / "gate"
    held = shown(ps.run(huge_flow(collector, gate)), gate)
    assert sorted(collector.items()) == sorted((item, HUGE_BYTES) for item in expected(COUNT))
    assert max(used for used, _ in held) > HUGE_BYTES, "one waited"
    assert all(used <= most for used, most in held)
    assert all(128 <= most >> 20 <= 128 + 1 for _, most in held), "and 256 KiB before each of five replicas"
