"""`stop()`: what it returns, and what it does when Spark ends the query in the same moment."""

import threading
import time
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

import penstock as ps
from penstock.epochs.commits import commits_of
from penstock.spark.slots import BOOK
from penstock.testing.collector import Collector
from tests.spark.items import expected, numbered
from tests.spark.test_cluster import ran
from tests.spark.test_crashes import wait_for
from tests.spark.test_supervised import cancel

pytestmark = pytest.mark.spark

COUNT = 3000


def slow(item: Any) -> Any:
    time.sleep(0.004)
    return item


def flow(collector: Collector, rate: float = 400) -> ps.Flow:
    """250 items a second are possible: some hundred wait when it is stopped."""
    made = ps.Flow("stopped")
    made.source(numbered(COUNT, rate=rate), name="numbers").map(slow).sink(collector, name="out")
    return made


def test_stop_returns_what_was_drained_and_does_so_again(
    spark: SparkSession, collector: Collector, tmp_path: Path
) -> None:
    job = ps.run(flow(collector), checkpoint=tmp_path)
    assert job.commit_s == 1
    wait_for(lambda: len(collector.items()) > 300)
    job.boundary()
    before = time.monotonic()
    drained = job.stop()
    assert drained is not None
    assert drained.commit == commits_of(tmp_path)[-1].number
    assert 0 < drained.took_s <= time.monotonic() - before
    assert drained.items.keys() == {"slow", "out"}
    assert 0 < drained.items["slow"] < COUNT
    assert job.stop() == drained
    reached = len(collector.items())
    assert Counter(collector.items()) == Counter(expected(reached))
    job = ps.run(flow(collector), checkpoint=tmp_path)
    job.abandon()
    assert job.stop() is None, "it was not drained"


def test_a_flow_that_ran_dry_was_drained(spark: SparkSession, collector: Collector) -> None:
    made = ps.Flow("dry")
    made.source(numbered(100), name="numbers").sink(collector, name="out")
    job = ps.run(made)
    assert job.await_termination(60)
    drained = job.stop()
    assert drained is not None
    assert drained.commit == 0


def test_a_query_that_dies_while_it_is_drained_is_started_again_and_drained_then(
    spark: SparkSession, collector: Collector, tmp_path: Path
) -> None:
    job = ps.run(flow(collector), checkpoint=tmp_path)
    wait_for(lambda: len(collector.items()) > 300)
    job.boundary()
    time.sleep(2)
    outcome: list[Any] = []
    stopping = threading.Thread(target=lambda: outcome.append(job.stop()))
    stopping.start()
    wait_for(lambda: job.status.state == "draining")
    seen = set(collector.items())
    cancel(spark)
    stopping.join(60)
    assert [type(one) for one in outcome] == [ps.Drained]
    assert outcome[0].commit == commits_of(tmp_path)[-1].number
    assert job.status.state == "stopped"
    assert job.metrics().restarts == 1
    counted = Counter(collector.items())
    assert counted.keys() == expected(len(counted)), "without a hole"
    assert seen < counted.keys()
    assert max(counted.values()) == 2
    reached = len(counted)
    collector.clear()
    assert ps.run(flow(collector, rate=5000), checkpoint=tmp_path).await_termination(60)
    rest = Counter(collector.items())
    assert set(rest) == expected(COUNT) - expected(reached), "all of it was committed"


def test_one_that_may_not_be_started_again_says_what_is_not_committed(
    spark: SparkSession, collector: Collector, tmp_path: Path
) -> None:
    job = ps.run(flow(collector), checkpoint=tmp_path, restarts=0)
    wait_for(lambda: len(collector.items()) > 300)

    def cancel_in_the_drain() -> None:
        wait_for(lambda: job.status.state == "draining")
        cancel(spark)

    threading.Thread(target=cancel_in_the_drain).start()
    with pytest.raises(
        ps.JobFailed,
        match=r"(?s)cancelled.*given up; what came after its last commit is not committed, a start on the",
    ):
        job.stop()
    assert job.status.state == "failed"


def test_stop_outlasts_an_outage_that_had_begun_before(
    spark: SparkSession, collector: Collector, monkeypatch: pytest.MonkeyPatch
) -> None:
    job = ps.run(flow(collector))
    wait_for(lambda: len(collector.items()) > 300)
    monkeypatch.setattr(job._claim, "_book", NoRoom(room_in_s=2.0))
    cancel(spark)
    wait_for(lambda: job.status.state == "restarting")
    drained = job.stop("30 s")
    assert drained is not None
    assert drained.took_s > 1
    assert job.metrics().restarts == 1


def test_stop_waits_for_slots_no_longer_than_its_time(
    spark: SparkSession, collector: Collector, monkeypatch: pytest.MonkeyPatch
) -> None:
    job = ps.run(flow(collector))
    wait_for(lambda: len(collector.items()) > 300)
    monkeypatch.setattr(job._claim, "_book", NoRoom(room_in_s=600))
    cancel(spark)
    wait_for(lambda: job.status.state == "restarting")
    with pytest.raises(
        ps.JobFailed, match=r"stopped before it could.*without a checkpoint nothing replays it"
    ):
        job.stop("1 s")


LOST = """
import json, os, signal, sys, threading, time
from collections import Counter
import penstock as ps
from penstock import processes
from penstock.epochs.commits import commits_of
from penstock.testing.collector import Collector
from penstock.faults.victims import executors
from tests.spark.items import expected
from tests.spark.test_stop import flow

if __name__ == "__main__":
    collector = Collector(sys.argv[1])
    job = ps.run(flow(collector), master="local-cluster[2,4,1024]")
    while len(collector.items()) < 300:
        time.sleep(0.05)
    job.boundary()
    time.sleep(3)
    stopping = threading.Thread(target=job.stop)
    stopping.start()
    while job.status.state == "running":
        time.sleep(0.01)
    seen = set(collector.items())
    worker = job.metrics().tasks["slow"].processes[0]
    os.kill(next(pid for pid in executors() if worker in processes.tree(pid)), signal.SIGKILL)
    stopping.join(100)
    drained = job.stop()
    counted = Counter(collector.items())
    print(json.dumps({
        "state": job.status.state,
        "commit": drained and drained.commit,
        "restarts": job.metrics().restarts,
        "whole": counted.keys() == expected(len(counted)) and seen <= counted.keys(),
    }))
    collector.close()
"""


def test_an_executor_that_is_lost_in_the_drain_costs_nothing(tmp_path: Path) -> None:
    result = ran(LOST, tmp_path)
    assert result == {"state": "stopped", "commit": 1, "restarts": 1, "whole": True}


class NoRoom:
    """Another flow holds all slots for a while."""

    def __init__(self, room_in_s: float) -> None:
        self._until_s = time.monotonic() + room_in_s

    def others(self, run: str) -> int:
        return 1000 if time.monotonic() < self._until_s else 0

    def free(self, run: str) -> None:
        BOOK.free(run)


def test_a_controller_that_could_never_decide_is_refused(spark: SparkSession, collector: Collector) -> None:
    with pytest.raises(ps.FlowError, match="nothing would ever be decided"):
        ps.run(flow(collector), commit="6 s", policy="static", interval="5 s")
    assert not spark.streams.active
