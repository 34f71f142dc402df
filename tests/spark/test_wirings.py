"""Every wiring on real Spark: who receives what, in which order, and nothing lost or doubled."""

import json
from collections import Counter, defaultdict
from typing import Any

import pytest
from pyspark.sql import SparkSession

import penstock as ps
from penstock.flow.codec import Codec
from penstock.testing.collector import Collector
from tests.spark.items import Item, assert_exactly_once, assert_ordered, numbered

pytestmark = pytest.mark.spark
COUNT = 2000


class Stamp:
    """Adds which replica saw the item, and by which stream it came."""

    def open(self, context: Any) -> None:
        self.context = context

    def process(self, item: Any, out: Any) -> None:
        out((item, self.context.replica, self.context.input))


def finish(flow: ps.Flow, **settings: Any) -> None:
    job = ps.run(flow, **settings)
    try:
        assert job.await_termination(60)
    finally:
        job.stop()


def same(item: Any) -> Any:
    return item


def test_round_robin_deals_evenly_and_keeps_order(spark: SparkSession, collector: Collector) -> None:
    flow = ps.Flow("deal")
    source = flow.source(numbered(COUNT, partitions=2), name="numbers")
    source.task(Stamp, name="stamp", parallelism=4).sink(collector, name="out")
    finish(flow)
    rows = collector.items()
    assert_exactly_once((row[0] for row in rows), COUNT, partitions=2)
    per_replica: dict[int, list[Item]] = defaultdict(list)
    for item, replica, _ in rows:
        per_replica[replica].append(item)
    assert sorted(per_replica) == [0, 1, 2, 3]
    assert all(len(items) == COUNT // 4 for items in per_replica.values())
    for items in per_replica.values():
        assert_ordered(items)


def last_digit(item: Item) -> int:
    return item.index % 10


def test_key_sends_equal_keys_to_one_replica(spark: SparkSession, collector: Collector) -> None:
    flow = ps.Flow("keys")
    source = flow.source(numbered(COUNT, partitions=2), name="numbers")
    source.by_key(last_digit).task(Stamp, name="stamp", parallelism=3).sink(collector, name="out")
    finish(flow)
    rows = collector.items()
    assert_exactly_once((row[0] for row in rows), COUNT, partitions=2)
    owners = defaultdict(set)
    for item, replica, _ in rows:
        owners[item.index % 10].add(replica)
    assert all(len(replicas) == 1 for replicas in owners.values())
    assert len(set.union(*owners.values())) > 1


def test_broadcast_reaches_every_replica(spark: SparkSession, collector: Collector) -> None:
    flow = ps.Flow("all")
    source = flow.source(numbered(500), name="numbers")
    source.broadcast().task(Stamp, name="stamp", parallelism=3).sink(collector, name="out")
    finish(flow)
    rows = collector.items()
    for replica in range(3):
        assert_exactly_once((row[0] for row in rows if row[1] == replica), 500)


def test_forward_stays_in_its_partition(spark: SparkSession, collector: Collector) -> None:
    flow = ps.Flow("pipe")
    source = flow.source(numbered(COUNT, partitions=2), name="numbers")
    a = source.forward().map(same, name="a", parallelism=2)
    b = a.forward().task(Stamp, name="b", parallelism=2)
    b.forward().sink(collector, name="out", parallelism=2)
    finish(flow)
    rows = collector.items()
    assert_exactly_once((row[0] for row in rows), COUNT, partitions=2)
    assert all(item.partition == replica for item, replica, _ in rows)
    for partition in range(2):
        assert_ordered([item for item, replica, _ in rows if replica == partition])


def test_fan_out_fan_in_relays_and_named_outputs(spark: SparkSession, collector: Collector) -> None:
    class Split:
        outputs = ("even", "odd")

        def process(self, item: Item, out: Any) -> None:
            out(item, "even" if item.index % 2 == 0 else "odd")

    flow = ps.Flow("diamond")
    source = flow.source(numbered(COUNT), name="numbers")
    parts = source.task(Split, name="split", parallelism=2)
    long_way = parts["even"].map(same, name="one").map(same, name="two")
    flow.task(Stamp, long_way, parts["odd"], source, name="join", parallelism=2).sink(collector, name="out")
    finish(flow)
    rows = collector.items()
    by_stream: dict[str, list[Item]] = defaultdict(list)
    for item, _, stream in rows:
        by_stream[stream].append(item)
    assert set(by_stream) == {"two->join", "split.odd->join", "numbers->join"}
    assert_exactly_once(by_stream["numbers->join"], COUNT)
    assert Counter(by_stream["two->join"] + by_stream["split.odd->join"]) == Counter(
        by_stream["numbers->join"]
    )


def test_flat_map_filter_and_two_sources(spark: SparkSession, collector: Collector) -> None:
    def twice(item: Item) -> list[tuple[Item, int]]:
        return [(item, 0), (item, 1)]

    def is_first(pair: tuple[Item, int]) -> bool:
        return pair[1] == 0

    flow = ps.Flow("forms")
    left = flow.source(numbered(300), name="left")
    right = flow.source(numbered(200), name="right")
    both = flow.flat_map(twice, left, right, name="twice", parallelism=2)
    both.filter(is_first).sink(collector, name="out")
    finish(flow)
    counts = Counter(item for item, _ in collector.items())
    assert counts == Counter([Item(0, i) for i in range(300)] + [Item(0, i) for i in range(200)])


def test_timer_runs_while_nothing_arrives(spark: SparkSession, collector: Collector) -> None:
    class Ticks:
        def __init__(self) -> None:
            self.ticks = 0

        def process(self, item: Item, out: Any) -> None:
            out(("item", item.index))

        def timer(self, out: Any) -> None:
            self.ticks += 1
            out(("tick", self.ticks))

        def close(self, out: Any) -> None:
            out(("closed", self.ticks))

    flow = ps.Flow("ticking")
    source = flow.source(numbered(4, rate=1.0), name="slow")
    source.task(Ticks, every="50 ms").batched("20 ms").sink(collector, name="out")
    job = ps.run(flow)
    job.await_termination(3.5)
    job.stop()
    kinds = Counter(kind for kind, _ in collector.items())
    assert kinds["tick"] > 10
    assert kinds["closed"] == 1
    assert collector.items()[-1] == ("closed", kinds["tick"])


@pytest.mark.parametrize("codec", ["bytes", "arrow", json])
def test_codecs_carry_their_items(spark: SparkSession, collector: Collector, codec: Codec) -> None:
    def code(item: Item) -> Any:
        if codec == "bytes":
            return f"{item.index}".encode()
        if codec is json:
            return {"index": item.index}
        import pyarrow as pa

        return pa.table({"index": [item.index]})

    def read(item: Any) -> Item:
        if codec is json:
            return Item(0, item["index"])
        return Item(0, int(item) if codec == "bytes" else item.column("index")[0].as_py())

    flow = ps.Flow("coded")
    source = flow.source(numbered(300), name="numbers")
    source.map(code, name="code").coded(codec).batched("5 ms").map(read, name="read").sink(
        collector, name="out"
    )
    finish(flow)
    assert_exactly_once(collector.items(), 300)
