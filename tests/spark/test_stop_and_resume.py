"""Stopping, resuming, and being killed: nothing is lost, and only the uncommitted comes twice."""

import json
import os
import signal
import subprocess
import sys
import time
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

import penstock as ps
from penstock.io import paced
from penstock.testing.collector import Collector
from tests.spark.items import Item, assert_exactly_once, expected, make_item, numbered

pytestmark = pytest.mark.spark


def same(item: Any) -> Any:
    return item


def make_flow(sink: Any, count: int, rate: float = 2000, ids: bool = False) -> ps.Flow:
    flow = ps.Flow("resumed", ids=ids)
    source = flow.source(paced(make_item, rate=rate, count=count, partitions=2), name="numbers")
    source.batched("20 ms").map(same, parallelism=2).batched("10 ms").sink(sink, name="out")
    return flow


def test_stop_and_start_again_is_exact(spark: SparkSession, collector: Collector, tmp_path: Path) -> None:
    for _ in range(3):
        job = ps.run(make_flow(collector, 8000), checkpoint=tmp_path / "checkpoint")
        job.await_termination(1.5)
        job.stop()
        assert job.status.state == "stopped"
    job = ps.run(make_flow(collector, 8000, rate=20000), checkpoint=tmp_path / "checkpoint")
    assert job.await_termination(60)
    assert_exactly_once(collector.items(), 8000, partitions=2)


def test_finished_flow_has_nothing_left_to_do(
    spark: SparkSession, collector: Collector, tmp_path: Path
) -> None:
    for _ in range(2):
        job = ps.run(make_flow(collector, 500), checkpoint=tmp_path / "checkpoint")
        assert job.await_termination(60)
    assert_exactly_once(collector.items(), 500, partitions=2)


def test_other_number_of_source_partitions_is_refused(
    spark: SparkSession, collector: Collector, tmp_path: Path
) -> None:
    job = ps.run(make_flow(collector, 200), checkpoint=tmp_path / "checkpoint")
    assert job.await_termination(60)
    flow = ps.Flow("resumed")
    flow.source(numbered(200, partitions=3), name="numbers").sink(collector, name="out")
    with pytest.raises(ps.FlowError, match=r'knows split "0/2" of source "numbers".*has 0/3, 1/3, 2/3.*new'):
        ps.run(flow, checkpoint=tmp_path / "checkpoint")


def test_stop_under_load_meets_its_deadline(spark: SparkSession, collector: Collector) -> None:
    def slow(item: Any) -> Any:
        time.sleep(0.05)
        return item

    flow = ps.Flow("loaded")
    flow.source(numbered(100000, rate=20000), name="numbers").map(slow).sink(collector, name="out")
    job = ps.run(flow)
    job.await_termination(2)
    started = time.monotonic()
    with pytest.raises(ps.JobFailed, match=r'flow "loaded" was not drained within 2 s .* replays it'):
        job.stop("2 s")
    assert time.monotonic() - started < 20
    assert job.status.state == "failed"
    assert job.exception() is not None


DRIVER = """
import sys
import penstock as ps
from penstock.io import dedup_jsonl
from penstock.testing.collector import Collector
from tests.spark.test_stop_and_resume import make_flow

collector = Collector(sys.argv[1])
if __name__ == "__main__":
    sink = dedup_jsonl(sys.argv[3]) if len(sys.argv) > 3 else collector
    job = ps.run(make_flow(sink, 6000, ids=len(sys.argv) > 3), checkpoint=sys.argv[2], commit="1 s")
    print("running", flush=True)
    job.await_termination()
"""


@pytest.mark.parametrize("dedup", [False, True])
def test_killed_driver_loses_nothing(private_tmp: Path, tmp_path: Path, dedup: bool) -> None:
    collected, checkpoint, deduplicated = tmp_path / "collected", tmp_path / "checkpoint", tmp_path / "dedup"
    arguments = [str(collected), str(checkpoint), *([str(deduplicated)] if dedup else [])]
    for attempt in range(3):
        driver = subprocess.Popen(
            [sys.executable, "-c", DRIVER, *arguments],
            stdout=subprocess.PIPE,
            text=True,
            env={**os.environ, "PENSTOCK_TEST": str(checkpoint)},
        )
        assert driver.stdout is not None
        assert driver.stdout.readline() == "running\n"
        if attempt < 2:
            time.sleep(2.5)
            driver.send_signal(signal.SIGKILL)
        assert driver.wait(90) == (-signal.SIGKILL if attempt < 2 else 0)
        driver.stdout.close()
        deadline = time.monotonic() + 60
        while orphans(str(checkpoint)) and time.monotonic() < deadline:
            time.sleep(0.1)
        assert not orphans(str(checkpoint))
    if dedup:
        rows = [tuple(row["item"]) for row in read_jsonl(deduplicated)]
        assert_exactly_once([Item(*row) for row in rows], 6000, partitions=2)
    else:
        collector = Collector(collected)
        seen = Counter(collector.items())
        assert seen.keys() == expected(6000, partitions=2)
        assert max(seen.values()) <= 3
        collector.close()


def read_jsonl(directory: Path) -> list[Any]:
    return [json.loads(line) for path in directory.glob("*.jsonl") for line in path.read_text().splitlines()]


def orphans(mark: str) -> list[str]:
    """Parents of workers that carry this mark in their environment."""
    found = []
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                command = (entry / "cmdline").read_bytes().decode(errors="replace")
                environment = (entry / "environ").read_bytes().decode(errors="replace")
            except OSError:
                continue
            if "penstock.worker.zygote" in command and mark in environment:
                found.append(entry.name)
    return found
