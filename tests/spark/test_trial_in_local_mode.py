"""In one process a row is handed over as a trial; where that fails Spark's own shuffle is used, and told."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.spark.ends import java
from tests.spark.test_cluster import ran

FAILED = """
import json, sys, time
from collections import Counter
import penstock as ps
from penstock.spark.session import session
from penstock.testing.collector import Collector
from tests.spark.items import expected, numbered

if __name__ == "__main__":
    collector = Collector(sys.argv[1])
    ours = session(4)._jvm.org.apache.spark.penstock
    trial = ours.HandoverShuffleManager.trial()
    ours.LinkShuffleManager.giveUp("java.lang.NoSuchMethodError: copy")
    flow = ps.Flow("failed")
    flow.source(numbered(600, rate=300), name="numbers").sink(collector, name="out", parallelism=2)
    told = []
    job = ps.run(flow, on_notice=told.append)
    deadline = time.monotonic() + 60
    while not collector.items() and time.monotonic() < deadline:
        time.sleep(0.01)
    used = ours.HandoverShuffleManager.inUse()
    ended = job.await_termination(60)
    exact = Counter(collector.items()) == Counter(expected(600))
    print(json.dumps({"trial": trial, "used": used, "ended": ended, "exact": exact, "told": told}))
    collector.close()
"""


@pytest.fixture(scope="module")
def jvm() -> Iterator[Any]:
    with java() as started:
        yield started


def test_what_is_missing_of_spark_is_found_by_the_trial(jvm: Any) -> None:
    """Here there is no Spark around it."""
    found = jvm.org.apache.spark.penstock.HandoverShuffleManager.trial()
    assert found.startswith("rows cannot be handed over inside the process: java.lang.NullPointerException")


@pytest.mark.spark
def test_a_flow_goes_over_sparks_shuffle_when_the_trial_fails(tmp_path: Path) -> None:
    result = ran(FAILED, tmp_path)
    assert result["trial"] is None
    assert result["used"] == 0
    assert result["ended"]
    assert result["exact"]
    (told,) = result["told"]
    assert told.endswith("Spark's own is: java.lang.NoSuchMethodError: copy")
