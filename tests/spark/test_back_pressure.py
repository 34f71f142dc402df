"""A slow sink holds the source back; memory stays where it is."""

import time
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

import penstock as ps
from penstock import Out, state
from penstock.epochs.commits import storage_of
from penstock.epochs.marks import marked_entry
from penstock.epochs.reports import VOIDS_BEFORE_QUIET
from penstock.io import paced
from tests.spark.test_marks import commits
from tests.spark.test_rescale_by_marks import until

pytestmark = pytest.mark.spark
ITEM_BYTES = 1000
LARGE_BYTES = 20_000
ALLOWED_GROWTH_MB = 120


def make(partition: int, index: int, seed: int) -> bytes:
    return bytes(ITEM_BYTES)


def same(item: Any) -> Any:
    return item


def slow(item: Any) -> None:
    time.sleep(0.005)


def dawdling(item: bytes) -> bytes:
    time.sleep(0.001)
    return item


def large(partition: int, index: int, seed: int) -> bytes:
    return index.to_bytes(4, "little") + bytes(LARGE_BYTES)


def key_of(item: bytes) -> int:
    return item[0]


class Counts:
    """Passes items on, and counts them by key."""

    seen = state.value(0)

    def process(self, item: bytes, out: Out[bytes]) -> None:
        self.seen += 1
        out(item)


def resident_mb(pid: int | str) -> float:
    for line in Path(f"/proc/{pid}/status").read_text().splitlines():
        if line.startswith("VmRSS:"):
            return int(line.split()[1]) / 1024
    return 0.0


def workers_mb(job: ps.Job) -> float:
    return sum(resident_mb(pid) for task in job.metrics().tasks.values() for pid in task.processes)


def memory_mb(spark: SparkSession, job: ps.Job) -> float:
    """Of Java, here also that of the executors, and of all workers."""
    assert spark._jvm is not None
    return workers_mb(job) + resident_mb(spark._jvm.java.lang.ProcessHandle.current().pid())


def held_mb(spark: SparkSession, job: ps.Job) -> float:
    """The same without what Java could free: its heap grows with what passes in a second."""
    jvm: Any = spark._jvm
    jvm.java.lang.System.gc()
    runtime = jvm.java.lang.Runtime.getRuntime()
    return workers_mb(job) + float(runtime.totalMemory() - runtime.freeMemory()) / 2**20


@pytest.mark.parametrize("lifetime", ["0 ms", "20 ms"])
def test_slow_sink_keeps_memory_flat(spark: SparkSession, lifetime: str) -> None:
    flow = ps.Flow("slow")
    source = flow.source(paced(make, rate=100_000), name="numbers")
    source.batched(lifetime).map(same, parallelism=2).batched(lifetime).sink(slow, name="out")
    job = ps.run(flow)
    until(lambda: job.metrics().tasks["out"].items_in > 0)
    time.sleep(3)
    before = memory_mb(spark, job)
    read = job.metrics().tasks["numbers"].items_in
    time.sleep(4)
    grown = memory_mb(spark, job) - before
    tasks = job.metrics().tasks
    job.abandon()
    assert len(tasks["numbers"].processes) == 1
    assert grown < ALLOWED_GROWTH_MB
    # 100 MB/s were on offer; what the source was held back from reading is most of it.
    assert tasks["numbers"].items_in - read < 40_000
    assert (tasks["numbers"].items_in - tasks["out"].items_in) * ITEM_BYTES < 40 << 20


def test_commits_go_on_while_a_slow_sink_holds_everything_back(spark: SparkSession, tmp_path: Path) -> None:
    flow = ps.Flow("slow")
    source = flow.source(paced(large, rate=100_000, partitions=2), name="numbers")
    counts = source.by_key(key_of).task(Counts, name="counts", parallelism=2)
    counts.sink(dawdling, name="out")
    job = ps.run(flow, checkpoint=tmp_path, commit="0.3 s")
    until(lambda: commits(job) >= 2)
    before, known = held_mb(spark, job), job.metrics()
    until(lambda: commits(job) >= 4)
    grown, now = held_mb(spark, job) - before, job.metrics()
    job.abandon()
    assert now.restarts == 0
    assert grown < ALLOWED_GROWTH_MB
    waiting = now.tasks["numbers"].items_in - now.tasks["out"].items_in
    assert waiting * LARGE_BYTES < 60 << 20
    passed = now.tasks["out"].items_in - known.tasks["out"].items_in
    assert now.tasks["numbers"].items_in - known.tasks["numbers"].items_in < 2 * passed + 1000, "held back"
    kept = sum(one.value for one in job.state("counts"))
    entry = marked_entry(storage_of(tmp_path))
    assert entry is not None
    assert kept == sum(position.ordinal for position in entry.positions["numbers"].values()), "a cut"


def small(item: bytes) -> bytes:
    return item[:4]


def test_a_store_that_is_full_voids_epochs_until_sources_wait_for_one(
    spark: SparkSession, tmp_path: Path
) -> None:
    """What comes past the slow task is stored behind its marks: more than there is room for."""
    flow = ps.Flow("full")
    source = flow.source(paced(large, rate=1200), name="numbers")
    late = source.map(small, name="small").map(dawdling, name="dawdling")
    counts = source.by_key(key_of).task(Counts, late.by_key(key_of), name="counts")
    counts.map(small, name="end").sink(same, name="out")
    job = ps.run(flow, checkpoint=tmp_path, commit="0.1 s")

    def voids() -> int:
        totals = job.metrics().commits
        assert totals is not None
        return totals.voids

    until(lambda: voids() >= VOIDS_BEFORE_QUIET)
    known = commits(job)
    until(lambda: commits(job) > known)
    job.stop()
    assert job.metrics().restarts == 0
    entry = marked_entry(storage_of(tmp_path))
    assert entry is not None
    (position,) = entry.positions["numbers"].values()
    wanted = Counter(key_of(large(0, index, 0)) for index in range(position.ordinal))
    assert {one.key: one.value for one in job.state("counts")} == {key: 2 * n for key, n in wanted.items()}
