"""A flow whose tasks and declarations have changed goes on with its state, on Spark."""

from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

import penstock as ps
from penstock import Out, state
from penstock.testing.collector import Collector
from tests.spark.items import Item, numbered
from tests.spark.test_marks import commits, read_before
from tests.spark.test_rescale_by_marks import until

pytestmark = pytest.mark.spark
COUNT, KEYS = 600, 10


def key_of(item: Item) -> int:
    return item.index % KEYS


class Clicks:
    seen = state.value(0)
    pages = state.list_of(int)
    idle = state.value("never used")

    def process(self, item: Item, out: Out[int]) -> None:
        self.seen += 1
        self.pages.append(item.index)
        self.idle = "used"
        out(self.seen)


class Visits:
    """`seen` has another name, pages are counted now, and `idle` is gone."""

    count = state.value(0, was="seen")
    pages = state.map_of(int, int, version=2, migrate=lambda pages, version: dict.fromkeys(pages, version))

    def process(self, item: Item, out: Out[int]) -> None:
        self.count += 1
        self.pages[item.index] = 2
        out(self.count)


def flow_of(collector: Collector, body: type, *, others: bool, **options: Any) -> ps.Flow:
    flow = ps.Flow("changing")
    keyed = flow.source(numbered(COUNT, rate=300), name="numbers").by_key(key_of)
    keyed.task(body, parallelism=2, **options).sink(collector, name="out")
    if others:
        keyed.count(name="others").sink(print, name="aside")
    return flow


def test_a_task_is_renamed_its_values_are_migrated_and_what_is_gone_is_dropped(
    spark: SparkSession, collector: Collector, tmp_path: Path
) -> None:
    settings: dict[str, Any] = {"checkpoint": tmp_path, "commit": "0.2 s"}
    job = ps.run(flow_of(collector, Clicks, others=True, name="clicks"), **settings)
    until(lambda: commits(job) >= 2)
    job.stop()
    before = len(read_before(tmp_path))
    assert 0 < before < COUNT
    renamed = flow_of(collector, Visits, others=False, name="visits", was="clicks")
    with pytest.raises(ps.FlowError, match=r'state of task "others", which the flow does not have'):
        ps.run(renamed, **settings, drop_state=["visits.idle"])
    with pytest.raises(ps.FlowError, match=r'task "visits" kept idle \(value\), which it does not declare'):
        ps.run(renamed, **settings, drop_state=["others"])
    job = ps.run(renamed, **settings, drop_state=["others", "visits.idle"])
    assert job.await_termination(60)
    times = range(1, COUNT // KEYS + 1)
    assert Counter(collector.items()) == dict.fromkeys(times, KEYS), "it goes on where it was, once each"
    kept = {(one.name, one.key): one.value for one in job.state("visits")}
    assert kept == {("count", key): len(times) for key in range(KEYS)} | {
        ("pages", key): {page: 1 if page < before else 2 for page in range(key, COUNT, KEYS)}
        for key in range(KEYS)
    }
    assert ps.run(renamed, **settings).await_termination(60), "it need not be said again"
