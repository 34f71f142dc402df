"""What is committed ten times a second takes no more room at the end than after a third of the time."""

from pathlib import Path

import pytest
from pyspark.sql import SparkSession

import penstock as ps
from penstock import Out, state
from penstock.bench.state_disk import StateFiles
from tests.spark.items import Item, numbered

pytestmark = pytest.mark.spark
COUNT = 3200
RATE = 400.0
KEYS = 97
LEAST = 40
"""Commits, so that each third has several bases, and what was changed between them."""


def key_of(item: Item) -> int:
    return item.index % KEYS


class Last:
    """The last few numbers of each key: what is kept changes, and does not grow."""

    numbers = state.list_of(int)
    seen = state.value(0)

    def process(self, item: Item, out: Out[int]) -> None:
        self.seen += 1
        self.numbers.append(item.index)
        del self.numbers[:-5]


def nothing(item: int) -> None: ...


def test_disk_use_is_flat(spark: SparkSession, tmp_path: Path) -> None:
    flow = ps.Flow("flat")
    source = flow.source(numbered(COUNT, rate=RATE, partitions=2), name="numbers")
    source.by_key(key_of).task(Last, name="last", parallelism=2).sink(nothing, name="nothing")
    job = ps.run(flow, checkpoint=tmp_path, commit="0.1 s", policy=None)
    files, looks = StateFiles(tmp_path), list[tuple[int, int]]()
    while not job.await_end(0.05):
        files.look()
        there = sum(path.is_file() for path in tmp_path.rglob("*"))
        looks.append((files.whole_bytes(), there))
    assert job.await_termination(0)
    commits = job.metrics().commits
    assert commits is not None
    assert commits.count >= LEAST
    third = len(looks) // 3
    for what in (0, 1):
        early, late = (max(look[what] for look in part) for part in (looks[:third], looks[-third:]))
        assert late <= 1.5 * early, ("bytes", "files")[what]
    assert files.bytes > 3 * looks[-1][0], "much more was written than is there"
