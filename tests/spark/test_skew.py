"""Half of the items have one key, on Spark: the controller gives the other keys of its replica to others."""

import time
from collections import Counter
from pathlib import Path
from typing import Any

import msgspec
import pytest
from pyspark.sql import SparkSession
from typer.testing import CliRunner

import penstock as ps
from penstock import Out, state
from penstock.cli.main import app
from penstock.control.decision_log import Entry
from penstock.control.recording import read_decisions
from penstock.policy.decision import Decision
from penstock.testing.collector import Collector
from tests.spark.items import Item, numbered
from tests.spark.test_rescale_by_marks import until

pytestmark = pytest.mark.spark
KEYS = 400
EVERY_S = "1 s"
SETTINGS = ("guards.warm_up_s=2", "guards.divide_keys_intervals=1")


def key_of(item: Item) -> int:
    """Every other item has key 0."""
    return 0 if item.index % 2 else 1 + item.index // 2 % KEYS


class SlowCounts:
    """Takes 4 ms for an item: of four replicas that with the heavy key is busy three quarters of the time."""

    by = state.key(int)
    seen = state.value(0)

    def open(self, context: Any) -> None:
        self.replica = context.replica

    def process(self, item: Item, out: Out[tuple[int, int, int]]) -> None:
        time.sleep(0.004)
        self.seen += 1
        out((self.by, self.seen, self.replica))


def skewed(collector: Collector) -> ps.Flow:
    flow = ps.Flow("skewed")
    source = flow.source(numbered(100_000, 300.0), name="numbers").batched("5 ms")
    parallelism = ps.elastic(1, 4, initial=4, pool=4)
    counts = source.by_key(key_of).task(SlowCounts, name="counts", parallelism=parallelism)
    counts.sink(collector, name="out")
    return flow


def divided(job: ps.Job) -> list[Entry]:
    return [entry for entry in job.decisions() if entry.decision.key_tables and entry.effect is not None]


def test_the_heavy_key_gets_a_replica_of_its_own(
    spark: SparkSession, collector: Collector, tmp_path: Path
) -> None:
    recording = tmp_path / "run.jsonl"
    job = ps.run(
        skewed(collector),
        checkpoint=tmp_path / "checkpoint",
        policy="static",
        interval=EVERY_S,
        settings=SETTINGS,
        recording=recording,
    )
    try:
        until(lambda: bool(divided(job)))
        known = len(collector.items())
        until(lambda: len(collector.items()) > known + 600)
        assert job.last_boundary() is None, "no source stood still for it"
    finally:
        job.stop()
    entry = divided(job)[0]
    assert entry.effect is not None
    assert entry.effect.problem is None
    told = str([one.decision.reasons for one in job.decisions()])
    assert "keys of one group stay together" in told
    assert "more than 2 replicas do not help" in told
    rows = collector.items()
    late = Counter((replica, key == 0) for key, _, replica in rows[known:])
    heavy = next(replica for replica in range(4) if late[replica, True])
    others = sum(count for (replica, is_heavy), count in late.items() if not is_heavy)
    assert late[heavy, False] < 0.1 * others, "its replica keeps few other keys"
    assert {one.key: one.value for one in job.state("counts")} == Counter(key for key, *_ in rows)
    check_decided_again(recording)


def check_decided_again(recording: Path) -> None:
    """A recording has all that the decisions were made of, and they with their tables."""
    told = CliRunner().invoke(app, ["decide", str(recording), "--as-run"])
    assert told.exit_code == 0, told.output
    again = [msgspec.json.decode(line, type=Decision) for line in told.stdout.splitlines()]
    assert again == [entry.decision for entry in read_decisions(recording)]
    assert any(decision.key_tables for decision in again)
