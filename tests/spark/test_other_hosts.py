"""Executors on other hosts connect; one whose cable is pulled ends its workers before others begin."""

import json
import os
import subprocess
import sys
from dataclasses import asdict
from pathlib import Path
from typing import Any

import pytest

from penstock.faults.hosts import Host, Hosts, cannot_make_hosts
from penstock.faults.standalone import standalone

pytestmark = [pytest.mark.spark, pytest.mark.slow]

CORES = 6
"""Of each host: one is enough for the flow."""

SCRIPT = """
import json, os, sys, time
import penstock as ps
from penstock import processes
from penstock.faults.hosts import Host
from penstock.faults.standalone import await_slots
from penstock.testing.collector import Collector
from tests.spark.items import numbered

def where(item):
    return item, os.getpid(), time.monotonic()

def alive(pid):
    fields = processes.stat(pid)
    return fields is not None and fields[0] != "Z"

if __name__ == "__main__":
    place, master, address, there = sys.argv[1:]
    there = Host(**json.loads(there))
    collector = Collector(place)
    flow = ps.Flow("apart")
    source = flow.source(numbered(90_000, rate=600), name="numbers")
    source.map(where, parallelism=4).sink(collector, name="out")
    here = {"spark.driver.host": address, "spark.driver.bindAddress": address}
    await_slots(ps.session(12, master, here), 12)
    job = ps.run(flow, master=master)
    pids = set()
    while len(pids) < 4:
        time.sleep(0.05)
        pids = {pid for _, pid, _ in collector.items()}
    far = list(filter(there.runs, pids))
    there.cut()
    cut_s = time.monotonic()
    while any(map(alive, far)) and time.monotonic() < cut_s + 30:
        time.sleep(0.01)
    gone_s = time.monotonic() - cut_s
    while job.status.state == "running" and time.monotonic() < cut_s + 30:
        time.sleep(0.01)
    noticed_s = time.monotonic() - cut_s
    job.await_end(1)  # what was under way near has arrived
    newest = max(item.index for item, *_ in collector.items())
    while max(item.index for item, *_ in collector.items()) < newest + 100:
        time.sleep(0.1)
    job.stop()
    rows = collector.items()
    seen = {item.index for item, *_ in rows}
    print(json.dumps({
        "gone_s": gone_s,
        "noticed_s": noticed_s,
        "lost": len(set(range(max(seen))) - seen),
        "last_far_s": max(at for _, pid, at in rows if pid in far) - cut_s,
        "first_again_s": min(at for _, pid, at in rows if pid not in pids) - cut_s,
        "outages": [outage.why for outage in job.outages()],
    }))
    collector.close()
"""


COUNTED = """
import json, os, sys, time
import penstock as ps
from penstock.faults.hosts import Host
from penstock.faults.standalone import await_slots
from penstock.testing.collector import Collector
from tests.spark.items import numbered
from tests.spark.test_state_commits import Counts, last_digit

COUNT = 9000

if __name__ == "__main__":
    place, master, address, there = sys.argv[1:]
    there = Host(**json.loads(there))
    collector = Collector(place)
    flow = ps.Flow("apart")
    source = flow.source(numbered(COUNT, rate=600), name="numbers")
    counts = source.by_key(last_digit).task(Counts(None, 0), name="counts", parallelism=4)
    counts.sink(collector, name="out")
    here = {"spark.driver.host": address, "spark.driver.bindAddress": address}
    await_slots(ps.session(12, master, here), 12)
    notices = []
    job = ps.run(
        flow, master=master, checkpoint=place + "-checkpoint", commit="500 ms",
        on_notice=notices.append,
    )
    far = set()
    while job.metrics().commits.count < 4 or not far:
        time.sleep(0.05)
        far = {pid for pid in job.metrics().tasks["counts"].processes if there.runs(pid)}
    there.cut()
    ended = job.await_termination(150)
    kept = job.state("counts")
    print(json.dumps({
        "ended": ended,
        "restarts": job.metrics().restarts,
        "seen": {one.key: one.value for one in kept if one.name == "seen"},
        "taken": sum(one.value for one in kept if one.name == "taken"),
        "notices": notices,
    }))
    collector.close()
"""


def test_state_in_a_directory_that_hosts_share_survives_one_of_them(tmp_path: Path) -> None:
    why = cannot_make_hosts()
    if why is not None:
        pytest.skip(why)
    with Hosts(2) as network:
        near, far = network.hosts
        with standalone(network.hosts, CORES, place=tmp_path / "cluster") as master:
            result = ran_on(near, master, far, tmp_path, COUNTED)
    assert result["ended"]
    assert result["restarts"] >= 1
    assert result["seen"] == {str(key): 900 for key in range(10)}
    assert result["taken"] == 9000
    assert not [words for words in result["notices"] if "in the memory of its workers" in words]


def test_an_executor_whose_cable_is_pulled(tmp_path: Path) -> None:
    why = cannot_make_hosts()
    if why is not None:
        pytest.skip(why)
    with Hosts(2) as network:
        near, far = network.hosts
        with standalone(network.hosts, CORES, place=tmp_path / "cluster") as master:
            result = ran_on(near, master, far, tmp_path)
    assert result["gone_s"] < 10
    assert result["noticed_s"] < 15
    assert result["lost"] == 0
    assert result["last_far_s"] < result["first_again_s"]
    assert "has said nothing for 10 s" in result["outages"][0]


def ran_on(host: Host, master: str, far: Host, tmp_path: Path, script: str = SCRIPT) -> dict[str, Any]:
    """What the script, with its driver on this host, says last."""
    arguments = [str(tmp_path / "collected"), master, host.address, json.dumps(asdict(far))]
    done = subprocess.run(
        host.command([sys.executable, "-c", script, *arguments]),
        capture_output=True,
        text=True,
        timeout=200,
        check=False,
        env={**os.environ, "SPARK_LOCAL_IP": host.address},
    )
    assert done.returncode == 0, done.stderr[-3000:]
    return dict(json.loads(done.stdout.splitlines()[-1]))
