"""The shuffle of one process: rows are handed over, each writer has room of its own, and nothing stays."""

import os
from typing import Any

import pytest
from pyspark.sql import SparkSession

import penstock as ps
from penstock.testing.collector import Collector
from tests.spark.items import assert_exactly_once, numbered
from tests.spark.test_crashes import same, wait_for

pytestmark = pytest.mark.spark


def inbox(spark: SparkSession, writers: int, room_bytes: int) -> Any:
    jvm: Any = spark._jvm
    return jvm.org.penstock.bridge.Inbox(writers, room_bytes)


def drained(box: Any) -> list[Any]:
    found = []
    while (row := box.take(0)) is not None:
        found.append(row)
    return found


def test_rows_are_taken_in_their_order_until_all_writers_have_ended(spark: SparkSession) -> None:
    box = inbox(spark, 2, 1000)
    first, second = box.channel(), box.channel()
    assert first.put("a", 10, 0)
    assert second.put("b", 10, 0)
    first.end()
    assert drained(box) == ["a", "b"]
    assert not box.isOver()
    assert second.put("c", 10, 0)
    second.end()
    assert not box.isOver(), "one row is still there"
    assert drained(box) == ["c"]
    assert box.isOver()


def test_a_writer_whose_room_is_full_holds_nobody_else_back(spark: SparkSession) -> None:
    box = inbox(spark, 2, 200)
    fast, slow = box.channel(), box.channel()
    assert fast.put("large", 5000, 0), "an empty channel takes any row"
    assert not fast.put("more", 1, 0)
    assert not fast.put("more", 1, 20), "nor does it get room by waiting"
    assert slow.put("a", 60, 0)
    assert slow.put("b", 40, 0)
    assert not slow.put("c", 1, 0), "half of the room is its own"
    assert box.take(0) == "large"
    assert fast.put("more", 1, 0)
    assert drained(box) == ["a", "b", "more"]


def test_a_reader_waits_no_longer_than_it_wants_to(spark: SparkSession) -> None:
    box = inbox(spark, 1, 100)
    assert box.take(30) is None
    assert not box.isOver()


@pytest.mark.skipif("PENSTOCK_TEST_MASTER" in os.environ, reason="executors of their own")
def test_a_flow_runs_over_it_and_leaves_none_behind(spark: SparkSession, collector: Collector) -> None:
    jvm: Any = spark._jvm
    manager = jvm.org.apache.spark.penstock.HandoverShuffleManager
    flow = ps.Flow("handed")
    source = flow.source(numbered(2000, rate=1000), name="numbers")
    source.map(same, name="left", parallelism=2).map(same, name="right", parallelism=3).sink(
        collector, name="out"
    )
    job = ps.run(flow)
    wait_for(lambda: len(collector.items()) > 300)
    assert manager.inUse() == 3
    job.boundary()
    assert job.await_termination(60)
    assert_exactly_once(collector.items(), 2000)
    wait_for(lambda: manager.inUse() == 0, 5)


def test_what_the_shuffle_between_executors_needs_of_spark_is_tried(spark: SparkSession) -> None:
    jvm: Any = spark._jvm
    ours = jvm.org.apache.spark.penstock
    assert ours.LinkShuffleManager.trial() is None
    ours.ShuffleSecret.know(jvm.java.util.Map.of())
    assert ours.LinkShuffleManager.trial() == "the plugin of Penstock made no secret"
    sent = ours.ShuffleSecret.made(spark.sparkContext._jsc.sc().conf())
    assert len(sent["shuffle.secret"]) == 64
    assert ours.LinkShuffleManager.trial() is None
