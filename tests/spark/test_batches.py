"""Tasks that take lists of items on Spark: chained in every way, under load, and with items that kill."""

import os
from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

import penstock as ps
from penstock.testing.collector import Collector
from tests.spark.items import Item, assert_exactly_once, assert_ordered, numbered, wait_for_items

pytestmark = pytest.mark.spark
COUNT = 6000


@dataclass
class Many(Collector):
    """Collects lists."""

    def write_many(self, items: list[Any]) -> None:
        for item in items:
            self.write((item, len(items)))


def same(items: list[Any]) -> list[Any]:
    return items


def alone(items: list[Any]) -> list[list[Any]]:
    return [[item] for item in items]


def one(item: Any) -> Any:
    return item


def test_chained_in_every_way_nothing_is_lost_doubled_or_reordered(spark: SparkSession) -> None:
    with Many() as collector:
        flow = ps.Flow("lists")
        source = flow.source(numbered(COUNT, rate=2000), name="numbers").batched("10 ms")
        a = source.map_batches(same, name="a", size=7)
        b = a.forward().map(one, name="b")
        c = b.forward().batched("5 ms").flat_map_batches(alone, name="c")
        c.forward().sink(collector, name="out")
        job = ps.run(flow, sampling=0.2)
        for chains in ([["a", "b"]], [], [["b", "c", "out"]], [], [["a", "b", "c", "out"]], []):
            wait_for_items(collector, min(COUNT, len(collector.items()) + COUNT // 12))
            job.set_chains(chains)
        assert job.await_termination(60)
        rows = collector.items()
        assert_exactly_once([item for item, _ in rows], COUNT)
        assert_ordered([item for item, _ in rows])
        assert max(size for _, size in rows) > 1
        assert {task.items_in for task in job.metrics().tasks.values()} == {COUNT}


def killers(items: list[Item]) -> list[Item]:
    if any(item.index in (40, 41) for item in items):
        os._exit(9)
    return items


def test_items_that_kill_are_found_among_the_others(
    spark: SparkSession, collector: Collector, tmp_path: Path
) -> None:
    flow = ps.Flow("deadly")
    source = flow.source(numbered(200), name="numbers").batched("5 ms")
    source.map_batches(killers, on_error="dead_letter").sink(collector, name="out")
    job = ps.run(flow, dead_letters=tmp_path)
    assert job.await_termination(60)
    seen = Counter(collector.items())
    assert {item.index for item in seen} == set(range(200)) - {40, 41}
    letters = (tmp_path / "killers-0.jsonl").read_text().splitlines()
    assert len({line for line in letters if "killed its worker process three times" in line}) == 2
