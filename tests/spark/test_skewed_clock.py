"""Executors whose clocks differ: one of two runs in a time namespace that is some seconds ahead."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

from penstock.faults.clocks import AHEAD_S, java_home, lacks_clocks, wish_for_one_ahead

pytestmark = pytest.mark.spark

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


@pytest.mark.skipif(bool(lacks_clocks()), reason=lacks_clocks())
def test_latencies_are_right_though_one_clock_is_ahead(tmp_path: Path) -> None:
    home = java_home(tmp_path)
    wish_for_one_ahead(home)
    done = subprocess.run(
        [sys.executable, "-c", SCRIPT, str(tmp_path / "out"), str(home)],
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
