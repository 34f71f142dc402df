"""Tasks that are chained and taken apart while data flow: nothing lost, doubled or reordered."""

import os
import time
from collections import defaultdict
from typing import Any

import pytest
from pyspark.sql import SparkSession

import penstock as ps
from penstock.testing.collector import Collector
from tests.spark.items import Item, assert_exactly_once, assert_ordered, numbered, wait_for_items

pytestmark = pytest.mark.spark
COUNT = 12000


class Visit:
    """Adds the process it runs in."""

    def process(self, item: Any, out: Any) -> None:
        out((*item, os.getpid()))


def begin(item: Item) -> tuple[Item]:
    return (item,)


def pipe(collector: Collector, lifetime: str, ids: bool = False) -> ps.Flow:
    flow = ps.Flow("pipe", ids=ids)
    source = flow.source(numbered(COUNT, rate=1500, partitions=2), name="numbers")
    stream = source.map(begin, parallelism=2).batched(lifetime)
    for name in "abc":
        stream = stream.forward().batched(lifetime).task(Visit, name=name, parallelism=2)
    stream.forward().sink(collector, name="out", parallelism=2)
    return flow


@pytest.mark.parametrize(("lifetime", "ids"), [("0 ms", False), ("10 ms", True)])
def test_chain_and_unchain_under_load(
    spark: SparkSession, collector: Collector, lifetime: str, ids: bool
) -> None:
    job = ps.run(pipe(collector, lifetime, ids), sampling=0.2)
    wait_for_items(collector, 1000)
    job.set_chains([["begin", "a", "b", "c"]])
    wait_for_items(collector, len(collector.items()) + 2000)
    job.snapshot(1.0)
    time.sleep(1.5)
    chained = job.snapshot(1.5)
    job.boundary()
    job.set_chains([["a", "b"]])
    wait_for_items(collector, len(collector.items()) + 1000)
    job.set_chains([])
    assert job.await_termination(60)
    rows = collector.items()
    assert_exactly_once((row[0] for row in rows), COUNT, partitions=2)
    per_replica = defaultdict(list)
    for replica, _, row in collector.records():
        per_replica[replica].append(row)
    for seen in per_replica.values():
        assert_ordered([row[0] for row in seen])
    processes = {len(set(row[1:])) for row in rows}
    assert processes == {1, 2, 3}

    def counts() -> dict[str, int]:
        return {name: task.items_in for name, task in job.metrics().tasks.items()}

    deadline = time.monotonic() + 5  # the last report of a worker may come after the end of its flow
    while {*counts().values()} != {COUNT} and time.monotonic() < deadline:
        time.sleep(0.05)
    assert {*counts().values()} == {COUNT}, counts()
    assert chained.chains == [["begin", "a", "b", "c"], ["out"]]
    for name in ("begin", "a", "b", "c"):
        assert chained.tasks[name].processed_total == pytest.approx(2250, rel=0.7)
        assert chained.tasks[name].service_ms is not None
    assert chained.stream("a->b").latency_ms == pytest.approx(0.0, abs=0.01)


def test_chained_task_keeps_its_error_policy(spark: SparkSession, collector: Collector) -> None:
    def odd_fail(item: Item) -> Item:
        if item.index % 2:
            raise ValueError("odd")
        return item

    def same(item: Item) -> Item:
        return item

    flow = ps.Flow("faulty")
    source = flow.source(numbered(4000, rate=2000), name="numbers")
    first = source.map(same)
    first.forward().map(odd_fail, on_error="skip").forward().sink(collector, name="out")
    job = ps.run(flow)
    job.set_chains([["same", "odd_fail", "out"]])
    assert job.await_termination(60)
    assert sorted(item.index for item in collector.items()) == list(range(0, 4000, 2))
    tasks = job.metrics().tasks
    assert tasks["odd_fail"].skipped == 2000
    assert tasks["out"].items_in == 2000
