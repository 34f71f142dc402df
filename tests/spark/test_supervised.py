"""A flow whose query Spark ends goes on at its last commit, under the same handle."""

import gc
import weakref
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

import penstock as ps
from penstock.spark.job import Job
from penstock.testing.collector import Collector
from tests.spark.items import expected, numbered
from tests.spark.test_cluster import ran
from tests.spark.test_crashes import same, wait_for

pytestmark = pytest.mark.spark

COUNT = 6000


def flow(collector: Collector, rate: float = 1500) -> ps.Flow:
    made = ps.Flow("survivor")
    source = made.source(numbered(COUNT, rate=rate), name="numbers")
    source.batched("2 ms").map(same, parallelism=ps.elastic(1, 4)).sink(collector, name="out")
    return made


def cancel(spark: SparkSession) -> None:
    """What Spark does when it gives up: the job of the running batch ends with an error."""
    spark.sparkContext.cancelAllJobs()


@pytest.fixture
def no_collector() -> Iterator[None]:
    """Nothing is collected but what somebody asks for."""
    gc.disable()
    yield
    gc.enable()


@pytest.mark.usefixtures("no_collector")
def test_a_failed_job_of_spark_is_started_again_at_the_last_commit(
    spark: SparkSession, collector: Collector, tmp_path: Path
) -> None:
    notices: list[str] = []
    job = ps.run(flow(collector), checkpoint=tmp_path, on_notice=notices.append)
    wait_for(lambda: len(collector.items()) > 800)
    job.set_active("same", 3)
    job.set_batch_lifetime("numbers->same", "7 ms")
    job.boundary()
    running = job._supervisor.bridge._query
    assert running is not None
    query = weakref.ref(running._jsq)
    del running
    for outage in range(2):
        before = len(collector.items())
        wait_for(lambda before=before: len(collector.items()) > before + 800)
        counted = job.metrics().tasks["numbers"].items_in
        there = len({item.index for item in collector.items()})
        cancel(spark)
        wait_for(lambda outage=outage: job.metrics().restarts == outage + 1)
    assert query() is None, "Java does not keep runs that are over"
    assert job.await_termination(90)
    seen = Counter(collector.items())
    assert seen.keys() == expected(COUNT), "nothing is lost"
    doubled = {item.index for item, times in seen.items() if times > 1}
    assert doubled
    assert min(doubled) > 700, "what was committed does not come again"
    metrics = job.metrics()
    assert (metrics.restarts, metrics.tasks["same"].active) == (2, 3)
    assert metrics.down_s > 0
    doubles = sum(seen.values()) - COUNT
    unreported = 2 * 2 * 1500  # workers report once a second
    assert doubles - unreported <= metrics.replayed <= doubles + unreported
    assert metrics.tasks["numbers"].items_in >= counted + COUNT - there, "counters go on"
    assert [outage.replayed for outage in job.outages()]
    assert any("is started again at its last commit" in notice for notice in notices)
    assert any("it runs again after" in notice for notice in notices)
    assert job.status.state == "stopped"


def test_too_many_restarts_end_the_flow(spark: SparkSession, collector: Collector, tmp_path: Path) -> None:
    job = ps.run(flow(collector), checkpoint=tmp_path, restarts=1)
    for outage in range(2):
        before = len(collector.items())
        wait_for(lambda before=before: len(collector.items()) > before + 300)
        cancel(spark)
        wait_for(lambda outage=outage: (job.metrics().restarts == 1 and job.is_running) or ended(job))
    with pytest.raises(
        ps.JobFailed, match=r"(?s)cancelled.*started again 1 times within 10 min, and is given up"
    ):
        job.await_termination(60)


def ended(job: Job) -> bool:
    return job.await_end(0)


def test_errors_of_the_users_code_end_it_at_once(spark: SparkSession, collector: Collector) -> None:
    def fails(item: Any) -> Any:
        raise ValueError("not this one")

    made = ps.Flow("hopeless")
    made.source(numbered(100), name="numbers").map(fails, name="fails").sink(collector, name="out")
    job = ps.run(made)
    with pytest.raises(ps.JobFailed, match=r'task "fails".*not this one'):
        job.await_termination(60)
    assert job.metrics().restarts == 0


LOST = """
import json, os, signal, sys, time
import gc
import weakref
from collections import Counter
from collections.abc import Iterator
import penstock as ps
from penstock.testing.collector import Collector
from penstock.faults.victims import executors
from tests.spark.items import expected, numbered
from tests.spark.test_crashes import same

if __name__ == "__main__":
    collector = Collector(sys.argv[1])
    flow = ps.Flow("survivor")
    source = flow.source(numbered(12000, rate=600), name="numbers")
    source.map(same, parallelism=3).sink(collector, name="out")
    job = ps.run(flow, master="local-cluster[2,4,1024]")
    while len(collector.items()) < 1000:
        time.sleep(0.05)
    job.boundary()
    before = len(collector.items())
    while len(collector.items()) < before + 500:
        time.sleep(0.05)
    os.kill(executors()[0], signal.SIGKILL)
    killed = time.monotonic()
    while job.status.state == "running" and time.monotonic() < killed + 30:
        time.sleep(0.005)
    noticed = time.monotonic() - killed
    ended = job.await_termination(120)
    seen = Counter(collector.items())
    metrics = job.metrics()
    print(json.dumps({
        "ended": ended,
        "lost": len(expected(12000) - seen.keys()),
        "first_doubled": min((item.index for item, times in seen.items() if times > 1), default=None),
        "noticed_s": noticed,
        "restarts": metrics.restarts,
        "down_s": metrics.down_s,
        "replayed": metrics.replayed,
        "doubled": sum(seen.values()) - 12000,
    }))
    collector.close()
"""


def test_a_killed_executor_is_noticed_and_survived(tmp_path: Path) -> None:
    result = ran(LOST, tmp_path)
    assert result["ended"]
    assert result["lost"] == 0
    assert result["restarts"] >= 1
    assert result["first_doubled"] is None or result["first_doubled"] >= 900
    assert result["noticed_s"] < 3
