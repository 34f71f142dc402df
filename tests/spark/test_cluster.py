"""Separate executors: the same flows, in processes of their own, started anew for this file."""

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from penstock.faults.drivers import SHORT_LIVED

pytestmark = pytest.mark.spark

SCRIPT = """
import json, os, sys, time
from collections import Counter
import msgspec
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
    view, deadline, executors = job.view(), time.monotonic() + 10, {}
    while time.monotonic() < deadline:
        executors = view.snapshot(1.0).executors or {}
        if len(executors) == 2 and all(told.memory_bytes and told.slots_used for told in executors.values()):
            break
        time.sleep(0.1)
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
        "executors": msgspec.to_builtins(executors),
    }))
    collector.close()
"""


MOVING = """
import json, os, sys, time
from collections import Counter, defaultdict
from pathlib import Path
import penstock as ps
from penstock import state
from penstock.testing.collector import Collector
from tests.spark.items import numbered, expected

KEYS = 50

class Remembers:
    counted = state.value(0)

    def open(self, context):
        self.context = context

    def process(self, item, out):
        self.counted += 1
        out((item, self.context.replica, os.getpid(), self.context.batch, os.getppid(), self.counted))

def key_of(item):
    return item.index % KEYS

def moved(rows):
    return len({(replica, parent) for _, replica, _, _, parent, _ in rows}) > 3

if __name__ == "__main__":
    collector = Collector(sys.argv[1])
    flow = ps.Flow("moving")
    keyed = flow.source(numbered(15000, rate=900), name="numbers").by_key(key_of)
    keyed.task(Remembers, name="remembers", parallelism=3).sink(collector, name="out")
    checkpoint = Path(os.environ["PENSTOCK_TEST"]) / "checkpoint"
    job = ps.run(flow, master="local-cluster[2,3,1024]", checkpoint=checkpoint)
    boundaries = 0
    while boundaries < 4 or (boundaries < 14 and not moved(collector.items())):
        before = len(collector.items())
        while len(collector.items()) < before + 300:
            time.sleep(0.05)
        job.boundary()
        boundaries += 1
    deadline = time.monotonic() + 8
    while (processes := len(job.metrics().tasks["remembers"].processes)) != 3 and time.monotonic() < deadline:
        time.sleep(0.1)
    ended = job.await_termination(60)
    rows = collector.items()
    batches = defaultdict(set)
    for _, replica, pid, batch, _, _ in rows:
        batches[replica, pid].add(batch)
    counts = [(key, count) for key in range(KEYS) for count in range(1, 15000 // KEYS + 1)]
    print(json.dumps({
        "ended": ended,
        "exact": Counter(row[0] for row in rows) == Counter(expected(15000)),
        "moved": moved(rows),
        "stale": [sorted(seen) for seen in batches.values() if max(seen) - min(seen) + 1 != len(seen)],
        "processes": processes,
        "restarts": job.metrics().restarts,
        "counted": sorted((key_of(row[0]), row[-1]) for row in rows) == counts,
        "kept": {one.key: one.value for one in job.state("remembers")} == dict.fromkeys(range(KEYS), 300),
    }))
    collector.close()
"""


def test_a_replica_that_moves_leaves_nothing_behind(tmp_path: Path) -> None:
    """No process goes on where another was in between, and none idles for a replica that went elsewhere.

    What it declares to keep goes along.
    """
    result = ran(MOVING, tmp_path)
    assert result["ended"]
    assert result["exact"]
    assert result["moved"], "14 boundaries, and no replica moved: by chance once in 16,000 times"
    assert result["stale"] == []
    assert result["processes"] == 3
    assert result["restarts"] == 0, "nobody died"
    assert result["counted"]
    assert result["kept"]


def ran(script: str, tmp_path: Path) -> dict[str, Any]:
    """What a script in a process of its own says last."""
    done = subprocess.run(
        [sys.executable, "-c", script, str(tmp_path / "collected")],
        capture_output=True,
        text=True,
        timeout=150,
        check=False,
        env={**os.environ, "PENSTOCK_TEST": str(tmp_path), "JAVA_TOOL_OPTIONS": SHORT_LIVED},
    )
    assert done.returncode == 0, done.stderr[-3000:]
    return dict(json.loads(done.stdout.splitlines()[-1]))


def test_two_executors_carry_the_same_flow(tmp_path: Path) -> None:
    result = ran(SCRIPT, tmp_path)
    assert result["ended"]
    assert result["exact"]
    assert result["parents"] == 2
    assert sorted(result["executors"]) == ["0", "1"]
    for told in result["executors"].values():
        assert told["slots"] == 8
        assert 0 < told["slots_used"] <= 8
        assert told["java_cores_used"] > 0
        assert told["memory_bytes"] > 100 * 2**20
    assert 'flow "spread" needs 2 for numbers, 6 for where, 2 for keyed' in result["refused"]
    assert "Spark has 6 task slots" in result["refused"]
