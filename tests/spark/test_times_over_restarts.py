"""Timers and times to live go on while a flow is stopped, on Spark."""

import time
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

import penstock as ps
from penstock import Out, state
from penstock.testing.collector import Collector
from tests.spark.items import Item, numbered
from tests.spark.test_rescale_by_marks import until

pytestmark = pytest.mark.spark
EARLY, KEYS = 100, 5
SILENCE_S = 5.0
Told = tuple[str, int, int, int, float]


def key_of(item: Item) -> int:
    """The first items have other keys than all later ones."""
    return item.index % KEYS if item.index < EARLY else KEYS


class Sessions:
    user = state.key(int)
    seen = state.value(0)
    recent = state.value(0, ttl="1 s")
    silence = state.timer()

    def process(self, item: Item, out: Out[Told]) -> None:
        self.seen += 1
        self.recent += 1
        self.silence.set(f"{SILENCE_S} s")
        out(("item", self.user, self.seen, self.recent, time.time()))

    @silence.fires
    def end(self, out: Out[Told]) -> None:
        out(("end", self.user, self.seen, self.recent, time.time()))


def sessions(collector: Collector) -> ps.Flow:
    flow = ps.Flow("sessions")
    source = flow.source(numbered(100_000, 200.0), name="clicks")
    source.by_key(key_of).task(Sessions, name="sessions", parallelism=2).sink(collector, name="out")
    return flow


def test_what_is_due_while_a_flow_is_stopped_fires_when_it_is_started_again(
    spark: SparkSession, collector: Collector, tmp_path: Path
) -> None:
    job = ps.run(sessions(collector), checkpoint=tmp_path)
    until(lambda: len(collector.items()) > EARLY)
    job.stop()
    before = [*collector.items()]
    assert not [row for row in before if row[0] == "end"], "it was stopped before any of them was due"
    again = ps.run(sessions(collector), checkpoint=tmp_path)
    until(lambda: len([row for row in collector.items() if row[0] == "end"]) >= KEYS)
    known = len(collector.items())
    until(lambda: len(collector.items()) > known + 100)
    again.stop()
    last = {key: at_s for kind, key, _, _, at_s in before if kind == "item"}
    ended = {
        key: (seen, recent, at_s) for kind, key, seen, recent, at_s in collector.items() if kind == "end"
    }
    assert len([row for row in collector.items() if row[0] == "end"]) == len(ended) == KEYS
    for key, (seen, recent, at_s) in ended.items():
        assert (seen, recent) == (EARLY // KEYS, 0), "it is known how many there were, and none was recent"
        assert at_s - last[key] > SILENCE_S - 0.1
