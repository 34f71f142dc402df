"""Declared state is in every commit: after a stop, with other replicas, and when workers die."""

import operator
import os
import signal
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

import penstock as ps
from penstock import Out, state
from penstock.epochs.commits import usable_commits
from penstock.epochs.looking import look
from penstock.spark.commits import CommitBy
from penstock.testing.collector import Collector
from tests.spark.items import Item, numbered, wait_for_items

pytestmark = pytest.mark.spark
COUNT = 300
Counted = tuple[str, int, int]


def last_digit(item: Item) -> int:
    return item.index % 10


class DiesOnce:
    """Kills its process at one item, the first time it sees it."""

    def __init__(self, witness: Path | None, index: int) -> None:
        self.witness = witness
        self.index = index

    def process(self, item: Item, out: Any) -> None:
        self.die_at(item)
        out(item)

    def die_at(self, item: Item) -> None:
        if item.index == self.index and self.witness is not None and not self.witness.exists():
            self.witness.touch()
            os.kill(os.getpid(), signal.SIGKILL)


class Counts(DiesOnce):
    """Counts by key and by replica."""

    by = state.key(int)
    seen = state.value(0)
    taken = state.per_replica(0, merge=operator.add)

    def open(self, context: Any) -> None:
        self.context = context

    def process(self, item: Item, out: Out[Counted]) -> None:
        self.seen += 1
        self.taken += 1
        self.die_at(item)
        out(("seen", self.by, self.seen))
        out(("taken", self.context.replica, self.taken))


def highest(rows: list[Counted], kind: str) -> dict[int, int]:
    """By key or replica."""
    found: dict[int, int] = {}
    for row, key, value in rows:
        if row == kind:
            found[key] = max(value, found.get(key, 0))
    return found


@pytest.mark.parametrize("commit_by", ["marks", "boundaries"])
def test_a_start_goes_on_with_the_state_in_other_replicas(
    spark: SparkSession, collector: Collector, tmp_path: Path, commit_by: CommitBy
) -> None:
    def counting(replicas: int, name: str = "counts") -> ps.Flow:
        flow = ps.Flow("kept")
        keyed = flow.source(numbered(COUNT, rate=200), name="numbers").by_key(last_digit)
        keyed.task(Counts(None, 0), name=name, parallelism=replicas).sink(collector, name="out")
        return flow

    place = tmp_path / "checkpoint"
    job = ps.run(counting(2), checkpoint=place, commit="1 s", commit_by=commit_by)
    wait_for_items(collector, COUNT)  # two of each item, so half of them
    job.stop()
    known = {kept.key: kept.value for kept in job.state("counts") if kept.name == "seen"}
    assert known == highest(collector.items(), "seen")
    with pytest.raises(ps.FlowError, match='no task "others"'):
        job.state("others")
    with pytest.raises(ps.FlowError, match=r'state of task "counts", which the flow does not have.*others'):
        ps.run(counting(2, "others"), checkpoint=place, commit_by=commit_by)
    job = ps.run(counting(3), checkpoint=place, commit="1 s", commit_by=commit_by)
    assert job.await_termination(60)
    rows = collector.items()
    seen = Counter((key, value) for kind, key, value in rows if kind == "seen")
    assert seen == {(key, value): 1 for key in range(10) for value in range(1, COUNT // 10 + 1)}
    assert sum(highest(rows, "taken").values()) == COUNT
    assert len(highest(rows, "taken")) == 3


def test_state_is_exact_when_workers_of_the_task_and_before_it_die(
    spark: SparkSession, collector: Collector, tmp_path: Path
) -> None:
    flow = ps.Flow("dying")
    passed = flow.source(numbered(COUNT, rate=200), name="numbers").task(
        DiesOnce(tmp_path / "first", 100), name="pass"
    )
    counts = passed.by_key(last_digit).task(Counts(tmp_path / "second", 250), name="counts", parallelism=2)
    counts.sink(collector, name="out")
    notices: list[str] = []
    job = ps.run(flow, commit="1 s", on_notice=notices.append)
    assert job.await_termination(60)
    rows = collector.items()
    assert highest(rows, "seen") == dict.fromkeys(range(10), COUNT // 10)
    assert {(key, value) for kind, key, value in rows if kind == "seen"} == {
        (key, value) for key in range(10) for value in range(1, COUNT // 10 + 1)
    }
    assert sum(highest(rows, "taken").values()) == COUNT
    metrics = job.metrics()
    assert metrics.restarts == 2
    ended = [words for words in notices if "has ended (killed by signal 9), and what depends on it" in words]
    assert len(ended) == 2, notices
    assert not any("in the memory of its workers" in words for words in notices)
    assert (tmp_path / "second").exists()


def test_state_goes_with_its_keys_when_replicas_change_at_boundaries(
    spark: SparkSession, collector: Collector, tmp_path: Path
) -> None:
    flow = ps.Flow("moving")
    keyed = flow.source(numbered(COUNT, rate=150), name="numbers").by_key(last_digit)
    several = ps.elastic(1, 4, initial=2)
    keyed.task(Counts(None, 0), name="counts", parallelism=several).sink(collector, name="out")
    job = ps.run(flow, checkpoint=tmp_path / "checkpoint", commit="10 s", commit_by="boundaries")
    for items, replicas in ((100, 4), (250, 1), (400, 3)):  # two of each item
        wait_for_items(collector, items)
        job.set_active("counts", replicas)
    assert job.await_termination(60)
    rows = collector.items()
    seen = Counter((key, value) for kind, key, value in rows if kind == "seen")
    assert seen == {(key, value): 1 for key in range(10) for value in range(1, COUNT // 10 + 1)}
    assert job.metrics().restarts == 0
    assert len({replica for kind, replica, _ in rows if kind == "taken"}) > 2
    assert sum(kept.value for kept in job.state("counts") if kept.name == "taken") == COUNT


@pytest.mark.parametrize("commit_by", ["marks", "boundaries"])
def test_a_flow_goes_back_to_an_older_commit_and_puts_later_ones_aside(
    spark: SparkSession, collector: Collector, tmp_path: Path, commit_by: CommitBy
) -> None:
    flow = ps.Flow("back")
    keyed = flow.source(numbered(COUNT, rate=200), name="numbers").by_key(last_digit)
    keyed.task(Counts(None, 0), name="counts").sink(collector, name="out")
    place = tmp_path / "checkpoint"
    settings: dict[str, Any] = {"checkpoint": place, "commit": "1 s", "commit_by": commit_by}
    assert ps.run(flow, **settings, keep_commits=5).await_termination(60)
    last = look(place)
    older = usable_commits(place)[0].number
    assert older < last.batch
    with pytest.raises(ps.FlowError, match=r"has no commit 99 to start from: it is not there; there are "):
        ps.run(flow, **settings, from_commit=99)
    before = len(collector.items())
    notices: list[str] = []
    job = ps.run(flow, **settings, from_commit=older, on_notice=notices.append)
    assert job.await_termination(60)
    again = collector.items()[before:]
    assert 0 < len(again) <= before, "what came after that commit, and nothing else"
    seen = {kept.key: kept.value for kept in job.state("counts") if kept.name == "seen"}
    assert seen == dict.fromkeys(range(10), COUNT // 10)
    (aside,) = (place / "aside").iterdir()
    assert any(f"after {older} were put aside, into {aside}" in words for words in notices)
    assert look(aside).kept == last.kept


class Killed(Counts):
    """Dies at one item each time."""

    def process(self, item: Item, out: Out[Counted]) -> None:
        if item.index == 120:
            os.kill(os.getpid(), signal.SIGKILL)
        super().process(item, out)


def test_an_item_that_kills_goes_the_way_of_on_error_though_there_is_state(
    spark: SparkSession, collector: Collector, tmp_path: Path
) -> None:
    flow = ps.Flow("killed")
    keyed = flow.source(numbered(COUNT, rate=400), name="numbers").by_key(last_digit)
    counts = keyed.task(Killed(None, 0), name="counts", on_error="dead_letter", parallelism=2)
    counts.sink(collector, name="out")
    job = ps.run(flow, commit="1 s", dead_letters=tmp_path / "letters")
    assert job.await_termination(90)
    expected = {digit: COUNT // 10 - (digit == 0) for digit in range(10)}
    assert highest(collector.items(), "seen") == expected
    assert job.metrics().tasks["counts"].dead_lettered == 1
    assert job.metrics().restarts == 3
    (letter,) = [line for file in (tmp_path / "letters").rglob("*") if file.is_file() for line in file.open()]
    assert "workers have ended at this item three times" in letter
