"""A process that has run a flow has the threads and open files that it had before."""

import gc
import threading
import time
from collections import Counter
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

import penstock as ps
from penstock.testing.collector import Collector
from tests.spark.items import numbered
from tests.spark.test_crashes import same, wait_for

pytestmark = pytest.mark.spark


def threads() -> set[str]:
    return {thread.name for thread in threading.enumerate()}


def opened() -> Counter[str]:
    """What the open descriptors lead to; the names of sockets and pipes are numbers."""
    gc.collect()
    found: Counter[str] = Counter()
    for entry in Path("/proc/self/fd").iterdir():
        try:
            found[str(entry.readlink()).partition(":")[0]] += 1
        except OSError:
            continue  # that of the listing itself
    return found


def run_once(collector: Collector, checkpoint: Path, *, controlled: bool) -> None:
    flow = ps.Flow("clean")
    flow.source(numbered(100_000, rate=500), name="numbers").map(same, parallelism=2).sink(
        collector, name="out"
    )
    collector.clear()
    job = ps.run(
        flow,
        checkpoint=checkpoint,
        policy="static" if controlled else None,
        interval="1 s" if controlled else None,
        metrics=0,
    )
    wait_for(lambda: len(collector.items()) > 100)
    job.boundary()
    job.stop()


def test_after_stop_threads_and_descriptors_are_as_before(
    spark: SparkSession, collector: Collector, tmp_path: Path
) -> None:
    run_once(collector, tmp_path, controlled=False)  # what Spark keeps for whoever calls it is there now
    before = threads()
    wait_for(lambda: not any(name.startswith("penstock-") for name in threads()))
    descriptors = opened()
    for controlled in (False, True):
        run_once(collector, tmp_path, controlled=controlled)
        deadline_s = time.monotonic() + 10
        while (threads() - before or opened() - descriptors) and time.monotonic() < deadline_s:
            time.sleep(0.1)
        assert threads() - before == set()
        assert opened() - descriptors == Counter()
