"""The measured parts of the way add up to the latency from end to end: no queue is hidden between them."""

import statistics
import time
from collections.abc import Callable
from typing import Any

import pytest
from pyspark.sql import SparkSession

import penstock as ps
from penstock.flow import Output
from penstock.observe.view import View
from penstock.spark.job import Job
from penstock.stats.sketch import Sketch
from tests.spark.items import Item, make_item
from tests.spark.test_crashes import wait_for

pytestmark = pytest.mark.spark

SETTLE_S = 1.5
WINDOW_S = 1.1
WINDOWS = 3


def same(item: Item) -> Item:
    return item


def seventh(item: Item) -> int:
    return item.index % 7


def slow(item: Item) -> Item:
    time.sleep(0.002)
    return item


def drop(item: Item) -> None:
    """The end of every flow here."""


def line(name: str, rate: float) -> tuple[ps.Flow, Output[Any]]:
    flow = ps.Flow(name)
    return flow, flow.source(ps.paced(make_item, rate), name="numbers")


def plain() -> ps.Flow:
    flow, numbers = line("plain", 400)
    numbers.map(same, name="a", parallelism=2).map(same, name="b").sink(drop, name="drop")
    return flow


def keyed() -> ps.Flow:
    flow, numbers = line("keyed", 400)
    numbers.by_key(seventh).map(same, name="a", parallelism=2).sink(drop, name="drop")
    return flow


def batched() -> ps.Flow:
    flow, numbers = line("batched", 1000)
    numbers.batched("20 ms").map(same, name="a").batched("20 ms").sink(drop, name="drop")
    return flow


def pipeline() -> ps.Flow:
    flow, numbers = line("pipeline", 400)
    numbers.map(same, name="a").forward().map(same, name="b").forward().map(same, name="c").sink(
        drop, name="drop"
    )
    return flow


def rate_limited() -> ps.Flow:
    flow, numbers = line("rate_limited", 300)
    numbers.map(slow, name="a").sink(drop, name="drop")
    return flow


def untouched(job: Job) -> None:
    """Most flows are measured as they were declared."""


def chain_all(job: Job) -> None:
    job.set_chains([["a", "b", "c"]])
    time.sleep(SETTLE_S)


@pytest.mark.parametrize(
    ("declare", "prepare"),
    [
        (plain, untouched),
        (keyed, untouched),
        (batched, untouched),
        (pipeline, untouched),
        (pipeline, chain_all),
        (rate_limited, untouched),
    ],
    ids=["plain", "keyed", "batched", "pipeline", "chained", "rate_limited"],
)
def test_the_parts_explain_the_whole(
    spark: SparkSession, declare: Callable[[], ps.Flow], prepare: Callable[[Job], None]
) -> None:
    """Within a tenth, or half a millisecond; the median of some windows, as others use the machine too."""
    job = ps.run(declare(), sampling=1.0, measure_every="0.5 s")
    try:
        wait_for(lambda: "drop" in job.metrics().latency, 60)
        time.sleep(SETTLE_S)
        prepare(job)
        view = job.view()
        windows = [whole_and_parts_ms(job, view) for _ in range(WINDOWS)]
    finally:
        job.stop()
    whole_ms = statistics.median(whole for whole, _ in windows)
    unexplained_ms = statistics.median(whole - parts for whole, parts in windows)
    assert abs(unexplained_ms) <= max(0.5, 0.1 * whole_ms), windows


def whole_and_parts_ms(job: Job, view: View) -> tuple[float, float]:
    """The mean from due time to the sink, and the sum of all that was measured on the way."""
    before = job.metrics().latency.get("drop", Sketch())
    time.sleep(WINDOW_S)
    snapshot, after = view.snapshot(WINDOW_S), job.metrics().latency["drop"]
    whole_ms = after.minus(before).mean
    tasks = [task.lag_ms if task.kind == "source" else task.latency_ms for task in snapshot.tasks.values()]
    parts = [*tasks, *(stream.latency_ms for stream in snapshot.streams)]
    assert whole_ms is not None
    assert None not in parts, snapshot
    return whole_ms, sum(part for part in parts if part is not None)
