"""What changes while a batch runs, and what at a boundary: nothing lost, doubled or reordered."""

import time
from collections import defaultdict
from collections.abc import Callable
from typing import Any

import pytest
from pyspark.sql import SparkSession

import penstock as ps
from penstock.io import paced
from penstock.testing.collector import Collector
from tests.spark.items import Item, assert_exactly_once, assert_ordered, numbered

pytestmark = pytest.mark.spark


class Seen:
    """Notes which replica saw an item, and when."""

    def open(self, context: Any) -> None:
        self.replica = context.replica

    def process(self, item: Item, out: Any) -> None:
        out((item, self.replica, time.monotonic()))


def flowing(collector: Collector, count: int, rate: float = 2000, by_key: bool = False) -> ps.Flow:
    flow = ps.Flow("switched")
    source = flow.source(numbered(count, rate=rate, partitions=2), name="numbers")
    stream = source.by_key(lambda item: item.index % 50) if by_key else source
    seen = stream.task(Seen, name="seen", parallelism=ps.elastic(1, 16, pool=8))
    seen.sink(collector, name="out")
    return flow


def wait_until(condition: Callable[[], Any], seconds: float = 30) -> None:
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline, "waited too long"
        time.sleep(0.02)


def replicas_since(collector: Collector, moment: float) -> set[int]:
    return {replica for _, replica, at in collector.items() if at > moment}


def assert_channels_ordered(rows: list[Any]) -> None:
    per_replica = defaultdict(list)
    for item, replica, _ in rows:
        per_replica[replica].append(item)
    for items in per_replica.values():
        assert_ordered(items)


def test_active_replicas_change_inside_a_batch(spark: SparkSession, collector: Collector) -> None:
    job = ps.run(flowing(collector, 12000))
    wait_until(lambda: len(collector.items()) > 500)
    assert replicas_since(collector, 0) == {0}
    job.set_active("seen", 8)
    wait_until(lambda: replicas_since(collector, 0) == set(range(8)), 5)
    wait_until(lambda: len(job.metrics().tasks["seen"].processes) == 8, 5)
    job.set_active("seen", 2)
    time.sleep(0.5)
    moment = time.monotonic()
    wait_until(lambda: len(job.metrics().tasks["seen"].processes) == 2, 10)
    assert replicas_since(collector, moment) <= {0, 1}
    assert job.last_progress is not None
    assert job.last_progress["batch"] == 0
    assert job.await_termination(60)
    rows = collector.items()
    assert_exactly_once((row[0] for row in rows), 12000, partitions=2)
    assert_channels_ordered(rows)


def test_keyed_replicas_change_at_a_boundary(spark: SparkSession, collector: Collector) -> None:
    job = ps.run(flowing(collector, 8000, by_key=True))
    wait_until(lambda: len(collector.items()) > 500)
    job.set_active("seen", 4)
    assert job.await_termination(60)
    rows = collector.items()
    assert_exactly_once((row[0] for row in rows), 8000, partitions=2)
    owners = defaultdict(set)
    for item, replica, _ in rows:
        owners[item.index % 50].add(replica)
    assert max(len(replicas) for replicas in owners.values()) <= 2
    assert {replica for _, replica, _ in rows} == {0, 1, 2, 3}


def test_batch_lifetime_and_sampling_change_inside_a_batch(spark: SparkSession, collector: Collector) -> None:
    flow = ps.Flow("lifetimes")
    flow.source(numbered(6000, rate=1000), name="numbers").sink(collector, name="out")
    job = ps.run(flow, sampling=1.0)

    def envelopes() -> tuple[int, int]:
        numbers = job.metrics().tasks["numbers"]
        return numbers.items_out, numbers.envelopes_out

    wait_until(lambda: envelopes()[0] > 1000)
    items, sent = envelopes()
    assert items == sent
    job.set_batch_lifetime("numbers->out", "100 ms")
    job.set_sampling(0.0)
    time.sleep(1.2)
    start = envelopes()
    sampled = job.metrics().latency["out"].count
    wait_until(lambda: envelopes()[0] > start[0] + 1500)
    end = envelopes()
    assert (end[0] - start[0]) / (end[1] - start[1]) > 20
    assert job.metrics().latency["out"].count == sampled
    assert job.await_termination(60)
    assert_exactly_once(collector.items(), 6000)


def test_boundary_and_pool_change_without_a_restart(spark: SparkSession, collector: Collector) -> None:
    job = ps.run(flowing(collector, 16000))
    wait_until(lambda: len(collector.items()) > 500)
    assert 0 < job.boundary() < 30_000
    assert 0 < job.set_pool("seen", 12) < 30_000
    assert job.metrics().tasks["seen"].pool == 12
    job.set_active("seen", 12)
    wait_until(lambda: replicas_since(collector, 0) == set(range(12)), 10)
    job.set_pool("seen", 3)
    moment = time.monotonic()
    assert job.metrics().tasks["seen"].active == 3
    assert job.await_termination(60)
    rows = collector.items()
    assert_exactly_once((row[0] for row in rows), 16000, partitions=2)
    assert_channels_ordered(rows)
    assert replicas_since(collector, moment) <= {0, 1, 2}


def test_refusals_name_the_remedy(spark: SparkSession, collector: Collector) -> None:
    flow = flowing(collector, 4000)
    job = ps.run(flow)
    with pytest.raises(ps.FlowError, match=r"9 active replicas.*pool of 8.*set_pool"):
        job.set_active("seen", 9)
    with pytest.raises(ps.FlowError, match="outside 1 to 16"):
        job.set_pool("seen", 17)
    with pytest.raises(ps.FlowError, match='no stream "a->b"'):
        job.set_batch_lifetime("a->b", "1 ms")
    with pytest.raises(ps.FlowError, match=r"sampling rate of 1.5"):
        job.set_sampling(1.5)
    job.stop()
    assert job.status.state == "stopped"
    with pytest.raises(ps.FlowError, match="is stopped"):
        job.set_active("seen", 2)


def test_paced_source_keeps_its_schedule_over_a_boundary(spark: SparkSession, collector: Collector) -> None:
    def make(partition: int, index: int, seed: int, due_ns: int) -> tuple[int, int]:
        return index, due_ns

    flow = ps.Flow("schedule")
    flow.source(paced(make, rate=500, count=2000), name="numbers").sink(collector, name="out")
    job = ps.run(flow)
    wait_until(lambda: len(collector.items()) > 300)
    job.boundary()
    assert job.await_termination(60)
    due = dict(collector.items())
    assert len(due) == 2000
    # After the boundary the source may be in another executor, which reads the clock anew.
    assert all(due[i + 1] - due[i] == pytest.approx(2e6, abs=2e5) for i in range(1999))
