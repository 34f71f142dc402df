"""Two drivers and one checkpoint: the second is refused before it reads anything, and follows a dead one."""

import os
import re
import signal
import subprocess
import sys
from collections import Counter
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

import penstock as ps
from penstock.spark.holder import FILE, decoded
from penstock.testing.collector import Collector
from tests.spark.items import expected, numbered
from tests.spark.test_crashes import wait_for

pytestmark = pytest.mark.spark

COUNT = 4000

FIRST = """
import sys
import penstock as ps
from penstock.testing.collector import Collector
from tests.spark.test_held_checkpoint import flow

if __name__ == "__main__":
    job = ps.run(flow(Collector(sys.argv[1])), checkpoint=sys.argv[2])
    print("running", flush=True)
    job.await_termination()
"""


def flow(collector: Collector, rate: float = 500) -> ps.Flow:
    made = ps.Flow("held")
    made.source(numbered(COUNT, rate=rate), name="numbers").sink(collector, name="out")
    return made


def kinds(checkpoint: Path) -> set[str]:
    """What is there, but for the commits that the first driver makes meanwhile."""
    paths = [path for path in checkpoint.rglob("*") if not path.name.startswith(".new-")]
    return {re.sub(r"\d+", "N", str(path.relative_to(checkpoint))) for path in paths}


def test_a_second_driver_is_refused_and_takes_over_when_the_first_is_killed(
    spark: SparkSession, private_tmp: Path, tmp_path: Path
) -> None:
    checkpoint = tmp_path / "checkpoint"
    collector = Collector(tmp_path / "collected")
    command = [sys.executable, "-c", FIRST, str(collector.directory), str(checkpoint)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as first:
        assert first.stdout is not None
        assert first.stdout.readline() == "running\n"
        wait_for(lambda: len(collector.items()) > 300)
        before = kinds(checkpoint)
        with pytest.raises(
            ps.FlowError, match=rf'{checkpoint} is held by flow "held" on .*, process {first.pid}, since 2'
        ):
            ps.run(flow(collector), checkpoint=checkpoint)
        assert kinds(checkpoint) == before
        killed = decoded((checkpoint / FILE).read_text())
        assert killed is not None
        first.send_signal(signal.SIGKILL)
        assert first.wait() == -signal.SIGKILL
    job = ps.run(flow(collector, rate=5000), checkpoint=checkpoint)
    assert len(killed.processes) == 2
    assert not killed.is_alive, "its Spark is gone, too, and commits nothing"
    holder = decoded((checkpoint / FILE).read_text())
    assert holder is not None
    assert holder.processes[0].startswith(f"{os.getpid()} ")
    assert job.await_termination(60)
    counted = Counter(collector.items())
    assert counted.keys() == expected(COUNT)
    assert max(counted.values()) == 2, "what was not committed came again, once"
    collector.close()


def test_flows_of_one_process_hold_each_other_off_and_a_start_that_fails_holds_nothing(
    spark: SparkSession, collector: Collector, tmp_path: Path
) -> None:
    job = ps.run(flow(collector), checkpoint=tmp_path)
    with pytest.raises(ps.FlowError, match=rf"process {os.getpid()}"):
        ps.run(flow(collector), checkpoint=f"file://{tmp_path}")
    job.stop()
    other = ps.Flow("other")
    other.source(numbered(10), name="renamed").sink(collector, name="out")
    with pytest.raises(ps.FlowError, match='knows the source "numbers"'):
        ps.run(other, checkpoint=tmp_path)
    ps.run(flow(collector), checkpoint=tmp_path).abandon()
    assert ps.run(flow(collector, rate=5000), checkpoint=tmp_path).await_termination(60)
    assert (tmp_path / FILE).read_text() == ""
