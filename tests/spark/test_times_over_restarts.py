"""Timers and times to live go on while a flow is stopped, and when keys change hands, on Spark."""

import time
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

import penstock as ps
from penstock import Out, state
from penstock.testing.collector import Collector
from penstock.wire.keys import key_group, owner
from tests.spark.items import Item, numbered
from tests.spark.test_rescale_by_marks import until

pytestmark = pytest.mark.spark
EARLY, KEYS = 100, 5
SILENCE_S = 5.0
SOON_S = 2.5
"""Longer than keys take to change hands."""
Told = tuple[str, int, int, int, float]


def key_of(item: Item) -> int:
    """The first items have other keys than all later ones."""
    return item.index % KEYS if item.index < EARLY else KEYS


class Sessions:
    silence_s = SILENCE_S
    user = state.key(int)
    seen = state.value(0)
    recent = state.value(0, ttl="1 s")
    silence = state.timer()

    def process(self, item: Item, out: Out[Told]) -> None:
        self.seen += 1
        self.recent += 1
        self.silence.set(f"{self.silence_s} s")
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


class Soon(Sessions):
    """Its timers tell where they fire."""

    silence_s = SOON_S

    def open(self, context: Any) -> None:
        self.replica = context.replica

    def end(self, out: Out[Told]) -> None:
        out(("end", self.user, self.seen, self.replica, time.time()))


def test_a_timer_fires_once_where_its_key_is_now(
    spark: SparkSession, collector: Collector, tmp_path: Path
) -> None:
    flow = ps.Flow("moving")
    several = ps.elastic(1, 4, initial=1, pool=4)
    source = flow.source(numbered(100_000, 200.0), name="clicks")
    source.by_key(key_of).task(Soon, name="sessions", parallelism=several).sink(collector, name="out")
    job = ps.run(flow, checkpoint=tmp_path, commit="0.3 s", policy=None)

    def ends() -> list[Told]:
        return [row for row in collector.items() if row[0] == "end"]

    until(lambda: len(collector.items()) > EARLY)
    job.set_active("sessions", 4)
    assert not ends(), "keys have changed hands before any of them was due"
    until(lambda: len(ends()) >= KEYS)
    known = len(collector.items())
    until(lambda: len(collector.items()) > known + 50)
    job.stop()
    assert {row[:4] for row in ends()} == {
        ("end", key, EARLY // KEYS, owner(key_group(key), 4)) for key in range(KEYS)
    }
    assert len(ends()) == KEYS, "each of them once"
    assert len({row[3] for row in ends()}) > 1
    assert job.metrics().restarts == 0
