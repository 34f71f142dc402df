"""Executors whose clocks differ: one of two runs in a time namespace that is some seconds ahead."""

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.spark

AHEAD_S = 5
SCRIPT = """
import json, os, sys, time
import penstock as ps
from penstock.testing.collector import Collector
from tests.spark.items import numbered

def where(item):
    return os.getppid(), time.monotonic() - time.time()

if __name__ == "__main__":
    collector = Collector(sys.argv[1])
    flow = ps.Flow("skewed")
    source = flow.source(numbered(1200, rate=400, partitions=2), name="numbers")
    placed = source.map(where, name="where", parallelism=4)
    placed.sink(collector, name="out", parallelism=2)
    conf = {"spark.executorEnv.JAVA_HOME": sys.argv[2]}
    job = ps.run(flow, master="local-cluster[2,6,1024]", conf=conf, sampling=1.0, measure_every="0.5 s")
    view = job.view()
    ended = job.await_termination(60)
    snapshot = view.snapshot(5.0)
    print(json.dumps({
        "ended": ended,
        "clocks": dict(collector.items()),
        "channels": {stream.name: stream.latency_ms for stream in snapshot.streams},
        "tasks": [task.lag_ms or task.latency_ms or 0 for task in snapshot.tasks.values()],
        "workers": sorted({worker for task in snapshot.tasks.values() for worker in task.worker or ()}),
        "whole": job.metrics().latency["out"].mean,
    }))
    collector.close()
"""

JAVA = """#!/bin/sh
# The first executor of the two gets a clock of its own.
if mkdir "{mark}" 2>/dev/null; then
    exec unshare --fork --kill-child --time --monotonic {ahead} -- "{java}" "$@"
fi
exec "{java}" "$@"
"""


def java_with_a_clock_of_its_own(place: Path) -> Path:
    """A home for Java whose first process is ahead of time."""
    usual = Path(os.environ["JAVA_HOME"]) / "bin" / "java" if "JAVA_HOME" in os.environ else None
    java = shutil.which("java") if usual is None else str(usual)
    home = place / "java"
    (home / "bin").mkdir(parents=True)
    program = home / "bin" / "java"
    program.write_text(JAVA.format(mark=place / "taken", ahead=AHEAD_S, java=java))
    program.chmod(0o755)
    return home


def clocks_can_be_set() -> bool:
    tried = ["unshare", "--fork", "--time", "--monotonic", "1", "--", "true"]
    return shutil.which("unshare") is not None and not subprocess.run(tried, capture_output=True).returncode


@pytest.mark.skipif(
    not clocks_can_be_set(), reason="no time namespaces: needs Linux 5.6, unshare and the right to use it"
)
def test_latencies_are_right_though_one_clock_is_ahead(tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-c", SCRIPT, str(tmp_path / "out"), str(java_with_a_clock_of_its_own(tmp_path))],
        capture_output=True,
        text=True,
        timeout=150,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-3000:]
    result = json.loads(done.stdout.splitlines()[-1])
    assert result["ended"]
    slow, fast = sorted(result["clocks"].values())
    assert abs(fast - slow - AHEAD_S) < 1, "the clocks of the two executors do differ"
    assert len(result["workers"]) == 2
    # Uncorrected, half of the channels would show about 5,000 ms, and the others none at all.
    assert all(0 < latency_ms < 1000 for latency_ms in result["channels"].values())
    explained_ms = sum(result["channels"].values()) + sum(result["tasks"])
    assert abs(result["whole"] - explained_ms) < 0.2 * result["whole"] + 5
