"""Headers, timestamps and keys on Spark: through processes, relays and chains, as without Spark."""

import time
from typing import Any

import pytest
from pyspark.sql import SparkSession

import penstock as ps
from penstock.testing import Collector
from penstock.testing import run as run_here
from penstock.worker.context import Context

COUNT = 600


class Records:
    """Numbers with metadata, but for every third."""

    name = "records"
    splits = ("left", "right")

    def start(self, split: str) -> int:
        return 0

    def open(self, split: str, offset: int, clock: Any) -> "RecordsReader":
        return RecordsReader(split, offset)


class RecordsReader:
    def __init__(self, split: str, offset: int) -> None:
        self.split = split
        self.offset = offset

    def read(self, limit: int, wait_s: float) -> tuple[list[ps.Record[int]], None] | None:
        time.sleep(wait_s)  # so that tasks are chained while items come
        first = self.offset
        self.offset = min(COUNT, first + 20)
        records = [self._record(number) for number in range(first, self.offset)]
        return (records, None) if records else None

    def _record(self, number: int) -> ps.Record[int]:
        if number % 3 == 0:
            return ps.Record(number)
        return ps.Record(number, {"split": self.split.encode()}, number, b"%d" % (number % 7))

    def close(self) -> None:
        """Nothing is held."""


class Seen:
    def open(self, context: Context) -> None:
        self.context = context

    def process(self, item: int, out: ps.Out[Any]) -> None:
        context = self.context
        out((item, dict(context.headers), context.timestamp, context.key))


class Marks:
    def process(self, item: int, out: ps.Out[int]) -> None:
        if item % 2:
            out.send(ps.Record(item, timestamp=-item))
        else:
            out(item)


def flow_of(sink: Any) -> ps.Flow:
    flow = ps.Flow("marked")
    numbers = flow.source(Records())
    marked = numbers.batched("2 ms").map(abs, parallelism=2).task(Marks, parallelism=2)
    seen = marked.forward().task(Seen, parallelism=2)
    early = numbers.task(Seen, name="early")  # two layers before the sink: through a relay
    flow.sink(sink, seen, early.batched("5 ms"), name="out")
    return flow


@pytest.mark.spark
def test_metadata_travel_as_without_spark(spark: SparkSession, collector: Collector) -> None:
    job = ps.run(flow_of(collector))
    job.set_chains([["Marks", "Seen"]])
    job.await_termination()
    by_repr = sorted(map(repr, collector.items()))
    assert len(by_repr) == 4 * COUNT
    assert by_repr == sorted(map(repr, run_here(flow_of(print))["out"]))
