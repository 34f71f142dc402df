"""Decisions carried out on a flow under load: pools, draining, slots; nothing lost, doubled or reordered."""

import time
from collections import defaultdict
from collections.abc import Callable
from typing import Any

import pytest
from pyspark.sql import SparkSession

import penstock as ps
from penstock.control.flow_engine import FlowEngine
from penstock.policy.decision import Decision
from penstock.testing.collector import Collector
from tests.spark.items import Item, assert_exactly_once, assert_ordered, numbered

pytestmark = pytest.mark.spark


class Slow:
    """Takes its time, and notes who did it and when."""

    def __init__(self, service_s: float) -> None:
        self.service_s = service_s

    def open(self, context: Any) -> None:
        self.replica = context.replica

    def process(self, item: Item, out: Any) -> None:
        time.sleep(self.service_s)
        out((item, self.replica, time.time()))


def loaded(collector: Collector, count: int, rate: float, service_s: float, pool: int = 4) -> ps.Flow:
    flow = ps.Flow("loaded")
    source = flow.source(numbered(count, rate=rate, partitions=2), name="numbers")
    work = source.task(Slow(service_s), name="work", parallelism=ps.elastic(1, 24, pool=pool))
    work.sink(collector, name="out")
    return flow


def decision(replicas: int) -> Decision:
    return Decision(
        policy="test",
        parallelism={"work": replicas},
        batch_lifetime_ms={},
        chains=[],
        feasible=True,
        reasons=[],
    )


def wait_until(condition: Callable[[], Any], seconds: float = 30) -> None:
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline, "waited too long"
        time.sleep(0.02)


def assert_all_there_in_order(rows: list[Any], count: int) -> None:
    assert_exactly_once((row[0] for row in rows), count, partitions=2)
    per_replica = defaultdict(list)
    for item, replica, _ in rows:
        per_replica[replica].append(item)
    for items in per_replica.values():
        assert_ordered(items)


def test_pool_grows_with_the_need_and_shrinks_when_it_is_far_too_large(
    spark: SparkSession, collector: Collector
) -> None:
    job = ps.run(loaded(collector, 6000, rate=700, service_s=0.002))
    engine = FlowEngine(job, 1.0, shrink_pools_after_s=0.5)
    wait_until(lambda: len(collector.items()) > 100)
    effect = engine.apply(decision(3))
    assert effect is not None
    assert (effect.pools, effect.gap_ms) == ({}, None)
    grown = engine.apply(decision(18))
    assert grown is not None
    assert grown.pools == {"work": 18}
    assert grown.gap_ms is not None
    assert (job.metrics().tasks["work"].pool, job.metrics().tasks["work"].active) == (18, 18)
    wait_until(lambda: {row[1] for row in collector.items()} == set(range(18)))
    assert engine.apply(decision(18)) is None, "nothing to do is no effect"
    assert engine.apply(decision(2)) is not None
    time.sleep(0.6)
    shrunk = engine.apply(decision(2))
    assert shrunk is not None
    assert shrunk.pools == {"work": 4}, "what was asked for"
    assert job.metrics().tasks["work"].pool == 4
    assert job.await_termination(60)
    assert_all_there_in_order(collector.items(), 6000)


def test_a_replica_that_is_no_longer_active_finishes_its_queue(
    spark: SparkSession, collector: Collector
) -> None:
    job = ps.run(loaded(collector, 900, rate=600, service_s=0.01))
    engine = FlowEngine(job, 1.0, shrink_pools_after_s=60)
    engine.apply(decision(4))
    wait_until(lambda: {row[1] for row in collector.items()} == {0, 1, 2, 3})
    time.sleep(0.5)  # more comes than four can do: all have queues now
    effect = engine.apply(decision(1))
    assert effect is not None
    assert effect.after_ms is not None
    switched = time.time()
    wait_until(lambda: len(job.metrics().tasks["work"].processes) == 1)
    assert job.await_termination(60)
    rows = collector.items()
    late = {replica for _, replica, at in rows if at > switched}
    assert late == {0, 1, 2, 3}, "what had queued up was still done where it was"
    assert_all_there_in_order(rows, 900)


def test_new_replicas_work_soon_after_the_decision(spark: SparkSession, collector: Collector) -> None:
    job = ps.run(loaded(collector, 1500, rate=500, service_s=0.004))
    engine = FlowEngine(job, 1.0, shrink_pools_after_s=60)
    wait_until(lambda: len(collector.items()) > 100)
    decided = time.time()
    effect = engine.apply(decision(4))
    assert effect is not None
    assert effect.after_ms is not None
    assert job.await_termination(60)
    first = {replica: min(at for _, r, at in collector.items() if r == replica) for replica in range(4)}
    took_ms = (max(first.values()) - decided) * 1000
    print(f"in effect after {effect.after_ms:.0f} ms; first item of the last replica after {took_ms:.0f}")
    assert max(effect.after_ms, took_ms) < 5000
    assert_all_there_in_order(collector.items(), 1500)


def test_without_slots_a_task_gets_what_its_pool_holds(
    spark: SparkSession, collector: Collector, monkeypatch: pytest.MonkeyPatch
) -> None:
    job = ps.run(loaded(collector, 1000, rate=700, service_s=0.001))
    monkeypatch.setattr(job._claim, "_all_slots", job.layout.slots)
    with pytest.raises(ps.FlowError, match=r"pools of .*6 for \"work\".* needs 9 task slots and Spark has 7"):
        job.set_pool("work", 6)
    engine = FlowEngine(job, 1.0, shrink_pools_after_s=60)
    effect = engine.apply(decision(12))
    assert effect is not None
    assert effect.limited == {"work": 4}
    assert job.metrics().tasks["work"].active == 4
    assert job.await_termination(60)
    assert engine.apply(decision(2)) is None, "a flow that is over needs nobody"
    assert_all_there_in_order(collector.items(), 1000)
