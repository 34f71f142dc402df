"""A policy scales a task that declares state, up and down with the load, on Spark: its state stays exact."""

from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

import penstock as ps
from penstock import Out, state
from penstock.apps.rate_limited import RateLimit
from penstock.control.decision_log import Entry
from penstock.io.schedule import steps
from penstock.policy.decision import Reason
from penstock.policy.guards.divide_keys import PRICE
from penstock.testing.collector import Collector
from tests.spark.items import Item, make_item
from tests.spark.test_rescale_by_marks import until

pytestmark = pytest.mark.spark
KEYS = 60
PER_REPLICA = 200.0
LOAD = steps([("1 s", 60.0), ("4 s", 500.0), ("1 h", 60.0)])
"""For one replica, for three, and for one again."""
PROMPT = (
    "guards.warm_up_s=0",
    "guards.scale_down_window_s=1",
    "guards.scale_down_shown_window_s=1",
    "guards.cool_down_intervals=0",
)


def key_of(item: Item) -> int:
    return item.index % KEYS


class Counts:
    """Limited to so many items a second."""

    by = state.key(int)
    seen = state.value(0)

    def open(self, context: Any) -> None:
        self.limit = RateLimit(PER_REPLICA)

    def process(self, item: Item, out: Out[tuple[int, int]]) -> None:
        begun_s = self.limit.begin()
        self.seen += 1
        out((self.by, self.seen))
        self.limit.end(begun_s)


def price_of(entry: Entry) -> list[Reason]:
    """There is none where no keys change hands."""
    return [reason for reason in entry.decision.reasons if reason.rule == PRICE]


def test_ds2_scales_a_task_with_state_up_and_down_and_tells_the_price(
    spark: SparkSession, collector: Collector, tmp_path: Path
) -> None:
    flow = ps.Flow("scaled")
    source = flow.source(ps.paced(make_item, LOAD), name="numbers")
    several = ps.elastic(1, 4, pool=4)
    counts = source.by_key(key_of).task(Counts, name="counts", parallelism=several)
    counts.sink(collector, name="out")
    job = ps.run(
        flow,
        checkpoint=tmp_path,
        commit="0.3 s",
        sampling=0.5,
        policy="ds2",
        settings=PROMPT,
        interval="1 s",
    )

    def changed() -> list[Entry]:
        """What was decided of the task's replicas, and done."""
        return [entry for entry in job.decisions() if entry.effect is not None and price_of(entry)]

    def replicas() -> list[int]:
        return [1, *(entry.decision.parallelism["counts"] for entry in changed())]

    try:
        until(lambda: max(replicas()) >= 3)
        until(lambda: replicas()[-1] == 1)
        assert job.metrics().tasks["counts"].active == 1
        assert job.last_boundary() is None, "no source ever stood still for it"
    finally:
        job.stop()
    for entry in changed():
        assert entry.effect is not None
        assert entry.effect.problem is None
        (price,) = price_of(entry)
        assert (price.task, price.after) == ("counts", entry.decision.parallelism["counts"])
        assert price.prediction is not None
        share, waits = price.prediction["moved_share"], price.prediction["wait_ms"]
        assert isinstance(share, float)
        assert 0.0 < share < 1.0
        assert price.prediction["moved_state_bytes"], "there is state of the keys that move"
        assert waits, "as long as the last commit took"
        assert "bytes of state change hands; their items wait for a commit, about" in price.why
    rows = collector.items()
    seen = Counter(key for key, _ in rows)
    assert sorted(rows) == sorted((key, count) for key in seen for count in range(1, seen[key] + 1))
    read = sum(seen.values())
    assert seen == Counter(key_of(Item(0, index)) for index in range(read)), "as a single process counts"
    assert {one.key: one.value for one in job.state("counts")} == seen
    assert job.metrics().restarts == 0
