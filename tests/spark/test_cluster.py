"""Separate executors: the same flows, in processes of their own, started anew for this file."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.spark

SCRIPT = """
import json, os, sys, time
from collections import Counter
import penstock as ps
from penstock.testing.collector import Collector
from tests.spark.items import numbered, expected
from tests.spark.test_switches import Seen

def where(item):
    return item, os.getppid()

if __name__ == "__main__":
    collector = Collector(sys.argv[1])
    flow = ps.Flow("spread")
    source = flow.source(numbered(6000, rate=1500, partitions=2), name="numbers")
    placed = source.map(where, parallelism=ps.elastic(2, 6, initial=4, pool=6))
    keyed = source.by_key(lambda item: item.index % 7).map(where, name="keyed", parallelism=2)
    keyed.sink(collector, name="keys")
    placed.sink(collector, name="out")
    master = "local-cluster[2,8,1024]"
    try:
        ps.run(flow, master="local-cluster[2,3,1024]")
        refused = ""
    except ps.FlowError as refusal:
        refused = str(refusal)
    job = ps.run(flow, master=master)
    job.await_termination(1.5)
    job.set_active("where", 6)
    gap_ms = job.boundary()
    job.set_pool("where", 5)
    ended = job.await_termination(60)
    items = Counter(item for item, _ in collector.items())
    print(json.dumps({
        "refused": refused,
        "ended": ended,
        "exact": items == Counter(list(expected(6000, 2)) * 2),
        "parents": len({parent for _, parent in collector.items()}),
        "gap_ms": gap_ms,
    }))
    collector.close()
"""


def test_two_executors_carry_the_same_flow(tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-c", SCRIPT, str(tmp_path / "collected")],
        capture_output=True,
        text=True,
        timeout=150,
        check=False,
        env={**os.environ, "PENSTOCK_TEST": str(tmp_path)},
    )
    assert done.returncode == 0, done.stderr[-3000:]
    result = json.loads(done.stdout.splitlines()[-1])
    assert result["ended"]
    assert result["exact"]
    assert result["parents"] == 2
    assert 'flow "spread" needs 2 for numbers, 6 for where, 2 for keyed' in result["refused"]
    assert "Spark has 6 task slots" in result["refused"]
