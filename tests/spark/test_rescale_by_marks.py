"""Keyed tasks change their replicas inside a batch, on Spark: state equals that of a single process."""

import contextlib
import itertools
import operator
import os
import signal
import threading
import time
from collections import defaultdict
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

import penstock as ps
from penstock import Out, state
from penstock.testing.collector import Collector
from penstock.wire.frames import read_epoch
from penstock.worker import sourcing, waiting
from tests.spark.items import Item, numbered

pytestmark = pytest.mark.spark
KEYS = 60
Counted = tuple[int, int, int]
"""A key, how often it was seen, and by which replica."""


def key_of(item: Item) -> int:
    return item.index % KEYS


def same(item: Item) -> Item:
    return item


class Counts:
    by = state.key(int)
    seen = state.value(0)

    def open(self, context: Any) -> None:
        self.replica = context.replica

    def process(self, item: Item, out: Out[Counted]) -> None:
        self.seen += 1
        out((self.by, self.seen, self.replica))


class Crowded(Counts):
    """Its replicas may hold nothing, and one of them is slow at marks: so sources wait at every change."""

    def open(self, context: Any) -> None:
        super().open(context)
        waiting.LIMIT_BYTES = -1  # type: ignore[misc]  # in the worker alone

    def flush(self) -> None:
        if self.replica == 0:
            time.sleep(0.1)


def counting(collector: Collector, numbers: ps.io.Paced[Item], body: type[Counts] = Counts) -> ps.Flow:
    """Two ways from the source to the counts, one of them past a layer."""
    flow = ps.Flow("rescaled")
    source = flow.source(numbers, name="numbers")
    passed = source.map(same, name="pass", parallelism=ps.elastic(1, 2, initial=1, pool=2))
    counts = passed.by_key(key_of).task(
        body, source.by_key(key_of), name="counts", parallelism=ps.elastic(1, 4, initial=2, pool=4)
    )
    counts.sink(collector, name="out")
    return flow


def watched(waited: Path) -> Callable[[int, int, int], Item]:
    """Items of a source that leaves a file when it is told to wait, or that it may go on."""

    def make(partition: int, index: int, seed: int) -> Item:
        def noted(body: bytes | memoryview) -> int:
            waited.touch()
            return read_epoch(body)

        sourcing.__dict__["read_epoch"] = noted
        return Item(partition, index)

    return make


def oracle(count: int) -> dict[int, int]:
    """How often a single process would see each key, when every item comes by two ways."""
    seen: dict[int, int] = defaultdict(int)
    for number in range(count):
        seen[key_of(Item(number % 2, number // 2))] += 2
    return seen


def until(met: Callable[[], bool]) -> None:
    deadline_s = time.monotonic() + 60
    while not met():
        assert time.monotonic() < deadline_s, "waited too long"
        time.sleep(0.02)


def settings(place: Path) -> dict[str, Any]:
    return {"checkpoint": place, "commit": "0.2 s", "policy": None}


def check(job: ps.Job, collector: Collector, count: int, *, once: bool) -> None:
    assert {one.key: one.value for one in job.state("counts")} == oracle(count)
    by_key = defaultdict(list)
    for key, seen, _ in collector.items():
        by_key[key].append(seen)
    for key, times in oracle(count).items():
        wanted = [*range(1, times + 1)]
        assert (by_key[key] if once else sorted({*by_key[key]})) == wanted


def test_up_and_down_under_load_without_a_boundary(
    spark: SparkSession, collector: Collector, tmp_path: Path
) -> None:
    count = 1000
    job = ps.run(counting(collector, numbered(count, 400.0, 2)), **settings(tmp_path / "checkpoint"))
    until(lambda: len(collector.items()) > 0)
    before = [*collector.items()]
    assert {replica for _, _, replica in before} <= {0, 1}
    job.set_active("counts", 4)
    assert job.metrics().tasks["counts"].active == 4
    known = len(collector.items())
    until(lambda: {replica for _, _, replica in collector.items()[known:]} == {0, 1, 2, 3})
    job.set_active("counts", 2)
    known = len(collector.items())
    until(lambda: len(collector.items()) > known + 50)
    job.pause("numbers")
    for replicas in (3, 1, 4, 4, 2):  # while nothing is read, and one after the other
        job.set_active("counts", replicas)
    job.resume("numbers")
    job.set_active("pass", 2)
    with pytest.raises(ps.FlowError, match=r"5 active replicas of task \"counts\".*pool of 4"):
        job.set_active("counts", 5)
    until(lambda: len(job.metrics().tasks["counts"].processes) == 2 or not job.is_running)
    assert job.last_boundary() is None, "no source ever stood still for it"
    assert job.await_termination(60)
    assert job.metrics().restarts == 0
    check(job, collector, count, once=True)


def test_whatever_is_killed_at_whatever_time_of_a_change(
    spark: SparkSession, collector: Collector, tmp_path: Path
) -> None:
    count = 1000
    place = tmp_path / "checkpoint"
    job = ps.run(counting(collector, numbered(count, 400.0, 2)), restarts=10, **settings(place))
    refused: list[str] = []
    over = threading.Event()

    def change() -> None:
        for replicas in itertools.cycle((4, 2, 3, 1)):
            if over.is_set() or job.status.state not in ("running", "restarting"):
                return
            try:
                job.set_active("counts", replicas)
            except ps.FlowError as problem:
                refused.append(str(problem))
                time.sleep(0.05)

    until(lambda: len(collector.items()) > 0)
    changing = threading.Thread(target=change)
    changing.start()
    try:
        for task, delay_s in (("counts", 0.35), ("pass", 0.2)):
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
    check(job, collector, count, once=False)
    ends = ("is restarting", "is draining", "is stopped")
    assert all(problem.endswith(ends) for problem in refused), refused


def test_sources_wait_for_replicas_that_hold_much_and_a_stop_waits_for_the_change(
    spark: SparkSession, collector: Collector, tmp_path: Path
) -> None:
    count = 500
    place, waited = tmp_path / "checkpoint", tmp_path / "waited"
    numbers = ps.paced(watched(waited), rate=300.0, count=count, partitions=2)
    job = ps.run(counting(collector, numbers, Crowded), **settings(place))
    until(lambda: len(collector.items()) > 0)
    job.set_active("counts", 3)
    until(waited.exists)
    known = len(collector.items())
    until(lambda: len(collector.items()) > known)

    def change() -> None:
        with contextlib.suppress(ps.FlowError):  # it is too late
            job.set_active("counts", 4)

    changing = threading.Thread(target=change)
    changing.start()
    time.sleep(0.01)
    assert job.stop() is not None
    changing.join(60)
    again = ps.run(counting(collector, numbers), **settings(place))
    assert again.await_termination(60)
    check(again, collector, count, once=True)


class Plain:
    """Declares no state of keys. One replica is slow, so that others could overtake what it has."""

    def open(self, context: Any) -> None:
        self.replica = context.replica

    def process(self, item: Item, out: Out[tuple[int, int, int]]) -> None:
        if self.replica == 0:
            time.sleep(0.003)
        out((item.partition, item.index, self.replica))


def evenly(value: int, replicas: int) -> list[int]:
    return [value // replicas + (number < value % replicas) for number in range(replicas)]


class Taken:
    """Values of replicas, without keys."""

    taken = state.per_replica(0, merge=operator.add)
    shared = state.per_replica(0, merge=operator.add, divide=evenly)

    def write(self, item: Item) -> None:
        self.taken += 1
        self.shared += 1


class Heard:
    """All of its replicas get all items, and know the same."""

    heard = state.per_replica(0, copied=True)

    def write(self, item: Item) -> None:
        self.heard += 1


def test_keys_without_state_and_values_of_replicas_need_no_boundary_either(
    spark: SparkSession, collector: Collector, tmp_path: Path
) -> None:
    count = 1000
    flow = ps.Flow("plain")
    source = flow.source(numbered(count, 400.0, 2), name="numbers")
    several = ps.elastic(1, 4, initial=2, pool=4)
    plain = source.by_key(key_of).task(Plain, name="plain", parallelism=several)
    plain.sink(collector, name="out")
    source.sink(Taken, name="taken", parallelism=several)
    source.broadcast().sink(Heard, name="heard", parallelism=several)
    job = ps.run(flow, **settings(tmp_path / "checkpoint"))
    until(lambda: len(collector.items()) > 0)
    for replicas in (4, 1, 3):
        known = len(collector.items())
        job.adapt(dict.fromkeys(("plain", "taken", "heard"), replicas), {})
        until(lambda known=known: len(collector.items()) > known + 100)  # type: ignore[misc]
    assert job.last_boundary() is None, "no source ever stood still for it"
    rows = collector.items()
    for key in range(KEYS):
        for partition in range(2):
            seen = [index for part, index, _ in rows if part == partition and index % KEYS == key]
            assert seen == sorted(seen), "no replica overtakes another"
    assert {replica for _, _, replica in rows} == {0, 1, 2, 3}
    os.kill(job.metrics().tasks["plain"].processes[0], signal.SIGKILL)
    assert job.await_termination(60)
    assert {row[:2] for row in collector.items()} == {(n % 2, n // 2) for n in range(count)}
    for name in ("taken", "shared"):
        assert sum(one.value for one in job.state("taken") if one.name == name) == count
    assert [one.value for one in job.state("heard")] == [count] * 3, "of three replicas, the third is new"
