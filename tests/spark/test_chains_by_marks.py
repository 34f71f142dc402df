"""Tasks are chained and taken apart while commits are marks, on Spark: state and files are exact."""

import itertools
import json
import os
import signal
import threading
import time
from collections import defaultdict
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import pytest
from pyspark.sql import SparkSession

import penstock as ps
from penstock import Out, state
from tests.spark.items import Item, numbered

pytestmark = pytest.mark.spark
KEYS = 40
COUNT = 1200
FRONT, BACK = ["first", "second"], ["counts", "noted", "files"]
Counted = tuple[int, int, int]
"""A key, how often it was seen, and in which process."""


def key_of(item: Item) -> int:
    return item.index % KEYS


def same(item: Item) -> Item:
    return item


class Counts:
    by = state.key(int)
    seen = state.value(0)

    def process(self, item: Item, out: Out[Counted]) -> None:
        self.seen += 1
        out((self.by, self.seen, os.getpid()))


class Noted:
    """Adds its process, and has something to say whenever it ends: what comes last must arrive, too."""

    def process(self, item: Counted, out: Out[tuple[int, ...]]) -> None:
        out((*item, os.getpid()))

    def close(self, out: Out[tuple[int, ...]]) -> None:
        out((-1, 0, 0, os.getpid()))


class Line(NamedTuple):
    """What a file has of an item."""

    key: int
    seen: int
    counted_in: int
    noted_in: int


def piped(directory: Path, rate: float = 400.0) -> ps.Flow:
    """numbers -> first =forward=> second =by key=> counts =forward=> noted =forward=> files"""
    flow = ps.Flow("chained")
    several = ps.elastic(1, 3, initial=2, pool=3)
    source = flow.source(numbered(COUNT, rate, 2), name="numbers")
    second = source.map(same, name="first", parallelism=2).forward().map(same, name="second", parallelism=2)
    counts = second.by_key(key_of).task(Counts, name="counts", parallelism=several)
    noted = counts.forward().task(Noted, name="noted", parallelism=several)
    noted.forward().sink(ps.jsonl(directory), name="files", parallelism=several)
    return flow


def written(directory: Path) -> list[Line]:
    """Whatever a reader finds."""
    texts = [file.read_text() for file in directory.rglob("*.jsonl")]
    return [Line(*json.loads(line)) for text in texts for line in text.splitlines()]


def check(job: ps.Job, directory: Path) -> list[Line]:
    """Against a single process; what was filed."""
    seen: dict[int, int] = defaultdict(int)
    for number in range(COUNT):
        seen[key_of(Item(number % 2, number // 2))] += 1
    assert {one.key: one.value for one in job.state("counts")} == seen
    lines = [line for line in written(directory) if line.key >= 0]
    wanted = [(key, time) for key, times in seen.items() for time in range(1, times + 1)]
    assert sorted(line[:2] for line in lines) == sorted(wanted), "each once"
    return lines


def until(met: Callable[[], bool]) -> None:
    deadline_s = time.monotonic() + 60
    while not met():
        assert time.monotonic() < deadline_s, "waited too long"
        time.sleep(0.02)


def commits(job: ps.Job) -> int:
    totals = job.metrics().commits
    assert totals is not None
    return totals.count


def test_chained_and_taken_apart_under_load(spark: SparkSession, tmp_path: Path) -> None:
    files, place = tmp_path / "files", tmp_path / "checkpoint"
    long_enough = piped(files, rate=120.0)
    job = ps.run(long_enough, checkpoint=place, commit="0.2 s", policy=None)

    def go_on() -> None:
        known = commits(job)
        until(lambda: commits(job) >= known + 2 or not job.is_running)

    until(lambda: commits(job) >= 1)
    for chains in ([FRONT, BACK], [], [FRONT, BACK[:2]], [BACK]):
        job.set_chains(chains)
        go_on()
    job.set_active("counts", 3)
    go_on()
    job.set_active("counts", 1)
    job.set_chains([])
    assert job.last_boundary() is None, "no source ever stood still"
    go_on()
    job.set_chains([BACK])
    go_on()
    job.set_chains([BACK[1:]])
    assert job.last_boundary() is not None, "who was hosted hosts"
    assert job.await_termination(60)
    assert job.metrics().restarts == 0
    lines = check(job, files)
    assert {line.counted_in == line.noted_in for line in lines} == {True, False}
    ends = [line for line in written(files) if line.key < 0]
    assert len(ends) >= 8, "what tasks said as they were taken apart, and at the end"


def test_kills_while_chains_change(spark: SparkSession, tmp_path: Path) -> None:
    files, place = tmp_path / "files", tmp_path / "checkpoint"
    job = ps.run(piped(files), checkpoint=place, commit="0.1 s", policy=None, restarts=10)
    over = threading.Event()
    refused: list[str] = []

    def change() -> None:
        for chains in itertools.cycle(([FRONT, BACK], [BACK[:2]], [BACK], [])):
            if over.is_set() or job.status.state not in ("running", "restarting"):
                return
            try:
                job.set_chains(chains)
            except ps.FlowError as problem:
                refused.append(str(problem))
            time.sleep(0.07)

    until(lambda: commits(job) >= 2)
    changing = threading.Thread(target=change)
    changing.start()
    try:
        for task, delay_s in (("counts", 0.45), ("first", 0.3)):
            until(lambda: job.is_running and bool(job.metrics().tasks["counts"].processes))
            time.sleep(delay_s)
            victims = job.metrics().tasks[task].processes
            if victims and job.is_running:
                os.kill(victims[-1], signal.SIGKILL)
                until(lambda: not job.is_running or job.metrics().restarts > 0)
    finally:
        over.set()
        changing.join(60)
    assert job.await_termination(60)
    assert job.metrics().restarts >= 1
    check(job, files)
    ends = ("is restarting", "is draining", "is stopped")
    assert all(problem.endswith(ends) for problem in refused), refused
