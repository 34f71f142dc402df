"""A slow sink holds the source back; memory stays where it is."""

import time
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

import penstock as ps
from penstock.io import paced

pytestmark = pytest.mark.spark
ITEM_BYTES = 1000
ALLOWED_GROWTH_MB = 120


def make(partition: int, index: int, seed: int) -> bytes:
    return bytes(ITEM_BYTES)


def same(item: Any) -> Any:
    return item


def slow(item: Any) -> None:
    time.sleep(0.005)


def resident_mb(pid: int | str) -> float:
    for line in Path(f"/proc/{pid}/status").read_text().splitlines():
        if line.startswith("VmRSS:"):
            return int(line.split()[1]) / 1024
    return 0.0


@pytest.mark.parametrize("lifetime", ["0 ms", "20 ms"])
def test_slow_sink_keeps_memory_flat(spark: SparkSession, lifetime: str) -> None:
    flow = ps.Flow("slow")
    source = flow.source(paced(make, rate=100_000), name="numbers")
    source.batched(lifetime).map(same, parallelism=2).batched(lifetime).sink(slow, name="out")
    job = ps.run(flow)
    assert spark._jvm is not None
    java = spark._jvm.java.lang.ProcessHandle.current().pid()
    deadline = time.monotonic() + 60
    while not job.metrics().tasks["out"].items_in and time.monotonic() < deadline:
        time.sleep(0.1)
    time.sleep(3)

    def memory_mb() -> float:
        processes = [pid for task in job.metrics().tasks.values() for pid in task.processes]
        return sum(map(resident_mb, [*processes, java]))

    before = memory_mb()
    read = job.metrics().tasks["numbers"].items_in
    time.sleep(4)
    grown = memory_mb() - before
    tasks = job.metrics().tasks
    job.abandon()
    assert len(tasks["numbers"].processes) == 1
    assert grown < ALLOWED_GROWTH_MB
    # 100 MB/s were on offer; what the source was held back from reading is most of it.
    assert tasks["numbers"].items_in - read < 40_000
    assert (tasks["numbers"].items_in - tasks["out"].items_in) * ITEM_BYTES < 40 << 20
