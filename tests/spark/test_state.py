"""Declared state on real Spark where nothing commits it: in the memory of workers, and a notice says so."""

import operator
import os
from collections import Counter, defaultdict
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

import penstock as ps
from penstock import Out, state
from penstock.spark.state_place import NoRoom
from penstock.testing.collector import Collector
from tests.spark.items import Item, numbered

pytestmark = pytest.mark.spark
COUNT = 300


class Counts:
    """Counts by key and by replica; a timer of each key tells its last count."""

    by = state.key(int)
    seen = state.value(0)
    taken = state.per_replica(0, merge=operator.add)
    silence = state.timer()

    def open(self, context: Any) -> None:
        self.context = context

    def process(self, item: Item, out: Out[tuple[str, int, int]]) -> None:
        self.seen += 1
        self.taken += 1
        out(("seen", self.by, self.seen))
        out(("taken", self.context.replica, self.taken))
        out(("batch", 0, self.context.batch))
        self.silence.set("10 ms")

    @silence.fires
    def end(self, out: Out[tuple[str, int, int]]) -> None:
        out(("end", self.by, self.seen))


def no_room(_spark: SparkSession, _address: str, *, is_named: bool) -> NoRoom:
    return NoRoom("it is an object store")


def last_digit(item: Item) -> int:
    return item.index % 10


@pytest.mark.skipif("PENSTOCK_TEST_MASTER" in os.environ, reason="a replica may move to another executor")
def test_state_is_kept_by_key_and_over_a_boundary(
    spark: SparkSession, collector: Collector, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("penstock.spark.run.room_of", no_room)
    flow = ps.Flow("kept")
    source = flow.source(numbered(COUNT, rate=200), name="numbers")
    source.by_key(last_digit).task(Counts, name="counts", parallelism=2).sink(collector, name="out")
    notices: list[str] = []
    job = ps.run(flow, commit="1 s", checkpoint=tmp_path / "checkpoint", on_notice=notices.append)
    try:
        assert job.await_termination(60)
    finally:
        job.stop()
    found: dict[str, Counter[tuple[int, int]]] = defaultdict(Counter)
    for kind, key, value in collector.items():
        found[kind][key, value] += 1
    assert found["seen"] == {(key, value): 1 for key in range(10) for value in range(1, COUNT // 10 + 1)}
    assert sum(max(value for key, value in found["taken"] if key == replica) for replica in (0, 1)) == COUNT
    assert len(found["batch"]) > 1
    assert found["end"].keys() <= found["seen"].keys()
    assert found["end"]
    assert [words for words in notices if "commits are boundaries, 1 s apart, and sources stop" in words]
    assert [words for words in notices if 'task "counts" (seen, taken, silence) is in the memory' in words]
    assert not (tmp_path / "checkpoint" / "epochs").exists()


def test_an_elastic_task_with_state_that_nobody_commits_is_refused(
    spark: SparkSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("penstock.spark.run.room_of", no_room)
    flow = ps.Flow("moving")
    source = flow.source(numbered(COUNT), name="numbers")
    source.by_key(last_digit).count(parallelism=ps.elastic(1, 3)).sink(print)
    with pytest.raises(ps.FlowError, match="give it a fixed parallelism"):
        ps.run(flow)
