"""Spark's own shuffle between executors: every row carries a seal, and one with another seal is refused."""

from pathlib import Path

import pytest

from penstock.spark.build_bridge import build
from tests.spark.test_cluster import ran

pytestmark = pytest.mark.spark
FORGER = "forger.jar"

SCRIPT = """
import json, os, sys
from collections import Counter
from pathlib import Path
import penstock as ps
from penstock.flow.spark_conf import SHUFFLE, SPARKS
from penstock.spark.session import session
from penstock.testing.collector import Collector
from tests.spark.items import expected, numbered
from tests.spark.test_crashes import same

MASTER = "local-cluster[2,6,1024]"
FORGER = Path(os.environ["PENSTOCK_TEST"]) / "forger.jar"
# With Spark's secret, which nobody can change in an executor, rows are sealed in the same way.
CONF = {SHUFFLE: SPARKS, "spark.jars": str(FORGER), "spark.authenticate": "false"}

def flow(name, sink):
    made = ps.Flow(name)
    source = made.source(numbered(600, rate=1000, partitions=2), name="numbers")
    source.map(same, parallelism=4).sink(sink, name="out")
    return made

if __name__ == "__main__":
    spark = session(12, MASTER, CONF)
    collector = Collector(sys.argv[1])
    job = ps.run(flow("sealed", collector), master=MASTER, conf=CONF)
    ended = job.await_termination(60)
    exact = Counter(collector.items()) == Counter(expected(600, 2))
    refused_before = job.metrics().refused

    forge = "reflect('OtherSecret', 'use', 'guessed')"
    spark.range(0, 1, 1, 1).selectExpr(forge).collect()
    job = ps.run(flow("forged", collector), master=MASTER, conf=CONF, restarts=0)
    try:
        job.await_termination(60)
        failure = ""
    except ps.JobFailed as failed:
        failure = str(failed)
    print(json.dumps({
        "ended": ended,
        "exact": exact,
        "refused_before": refused_before,
        "failure": failure,
        "refused": job.metrics().refused,
    }))
    collector.close()
"""


def test_a_row_that_another_has_sealed_ends_the_flow_unread(tmp_path: Path) -> None:
    build(Path(__file__).parent / "java", tmp_path / FORGER)
    result = ran(SCRIPT, tmp_path)
    assert result["ended"]
    assert result["exact"]
    assert result["refused_before"] == {}
    # Spark tells of what it hears of first: the reader, or the writer whose connection the reader has closed.
    told = ("brought a row that no executor of this application has sealed", "ClosedChannelException")
    assert any(words in result["failure"] for words in told)
    assert set(result["refused"]) <= {"0", "1"}
    assert sum(result["refused"].values()) >= 1
