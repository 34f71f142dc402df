"""Workers report while items flow: as much as is asked for, and what is missing is seen to be missing."""

import os
import signal
import time
from collections.abc import Callable

import pytest
from pyspark.sql import SparkSession

import penstock as ps
from penstock.policy.decision import Refusal
from penstock.stats.snapshot import TaskStats
from penstock.testing.collector import Collector
from tests.spark.items import Item, assert_exactly_once, numbered

pytestmark = pytest.mark.spark

PATIENCE_S = 30.0


def same(item: Item) -> Item:
    return item


def spread(collector: Collector, count: int) -> ps.Flow:
    """400 items a second for two replicas of a task."""
    flow = ps.Flow("spread")
    source = flow.source(numbered(count, rate=400), name="numbers")
    source.map(same, name="work", parallelism=ps.elastic(2, 4, initial=2)).sink(collector, name="out")
    flow.constrain("50 ms", ["numbers->work", "work", "work->out"])
    return flow


def until(seen: Callable[[], bool]) -> None:
    deadline = time.monotonic() + PATIENCE_S
    while not seen():
        assert time.monotonic() < deadline
        time.sleep(0.1)


def test_sampling_can_be_turned_while_items_flow(spark: SparkSession, collector: Collector) -> None:
    job = ps.run(spread(collector, 100_000), sampling=0.0, measure_every="0.5 s", policy=None)
    view = job.view()

    def look() -> TaskStats:
        time.sleep(1.5)
        return view.snapshot(1.5).tasks["work"]

    until(lambda: bool(look().processed_total))
    assert look().service_ms is None, "nothing is timed"
    job.set_sampling(1.0)
    until(lambda: look().service_ms is not None)
    job.set_sampling(0.0)
    look()
    later = look()
    assert later.service_ms is None
    assert later.processed_total, "items are counted all the same"
    job.stop()


def test_a_worker_that_stops_reporting_leaves_a_hole_and_nothing_is_decided(
    spark: SparkSession, collector: Collector
) -> None:
    count = 4000
    job = ps.run(spread(collector, count), sampling=0.5, measure_every="0.5 s", policy="ds2", interval="1 s")
    until(lambda: len(job.metrics().tasks["work"].processes) == 2 and bool(job.decisions()))

    def refusals() -> list[Refusal]:
        return [refusal for entry in job.decisions() for refusal in entry.decision.refused]

    victim = job.metrics().tasks["work"].processes[0]
    os.kill(victim, signal.SIGSTOP)
    try:
        until(lambda: any("only 1 of 2 replicas of 'work' reported" in each.why for each in refusals()))
    finally:
        os.kill(victim, signal.SIGCONT)
    hole = next(each for each in refusals() if "only 1 of 2" in each.why)
    assert (hole.guard, hole.task) == ("missing_data", "work")
    kept = [entry.decision for entry in job.decisions() if hole in entry.decision.refused]
    assert {decision.parallelism["work"] for decision in kept} == {2}
    assert job.await_termination(60)
    assert_exactly_once(collector.items(), count)
