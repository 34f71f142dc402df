"""Penstock's shuffle between two executors: a plain query, a flow, large items, strangers at its ports."""

from pathlib import Path

import pytest

from tests.spark.test_cluster import ran
from tests.spark.test_neighbours import LOOPBACK

pytestmark = pytest.mark.spark

SCRIPT = """
import json, os, socket, sys, time
from collections import Counter
from pathlib import Path
from pyspark.sql import functions as F
import penstock as ps
from penstock import processes
from penstock.faults.leftovers import listening
from penstock.flow.spark_conf import LINKS, SHUFFLE
from penstock.spark.build_bridge import BENCH_JAR
from penstock.spark.session import session
from penstock.testing.collector import Collector
from tests.spark.items import Item, expected, numbered

MASTER = "local-cluster[2,8,1024]"
CONF = {
    SHUFFLE: LINKS,
    "spark.jars": str(BENCH_JAR),
    "spark.sql.streaming.realTimeMode.minBatchDuration": "500",
    "spark.sql.streaming.realTimeMode.allowlistCheck": "false",
}

def padded(item):
    return item, bytes(3_000_000 if item.index % 100 == 0 else 10)

def measured(pair):
    return pair[0], len(pair[1])

def executors():
    below = processes.tree(os.getpid())
    said = {pid: Path(f"/proc/{pid}/cmdline").read_bytes().split(b"\\0") for pid in below}
    backend = b"org.apache.spark.executor.CoarseGrainedExecutorBackend"
    return [pid for pid, words in said.items() if backend in words]

def plain(spark):
    rows = spark.readStream.format("org.penstock.bench.PacedRows").option("rate", "2000").load()
    sums = [F.count("seq").alias("rows"), F.sum("seq").alias("sum"), F.bit_xor(F.hash("seq")).alias("all")]
    spread = rows.observe("sent", *sums).repartition(5).observe("received", *sums)
    trigger = spark._jvm.org.apache.spark.sql.streaming.Trigger.RealTime("3 seconds")
    writer = spread.writeStream.format("noop").outputMode("update")
    query = writer._jwrite.trigger(trigger).start()
    deadline = time.monotonic() + 60
    found = []
    while sum(batch["sent"]["rows"] for batch in found) < 1000 and time.monotonic() < deadline:
        time.sleep(0.05)
        found = [json.loads(progress.json())["observedMetrics"] for progress in query.recentProgress()]
    query.stop()
    return found

if __name__ == "__main__":
    spark = session(16, MASTER, CONF)
    seen = plain(spark)
    collector = Collector(sys.argv[1])
    flow = ps.Flow("linked")
    source = flow.source(numbered(4000, rate=1500, partitions=2), name="numbers")
    source.map(padded, parallelism=3).by_key(lambda pair: pair[0].index % 7).map(
        measured, parallelism=3).sink(collector, name="out")
    told = []
    job = ps.run(flow, master=MASTER, conf=CONF, on_notice=told.append)
    job.await_termination(1)
    heard = {pid: listening(pid) for pid in executors()}
    for place in sum(heard.values(), []):
        with socket.create_connection(("127.0.0.1", int(place.split(":")[1], 16)), timeout=5) as caller:
            caller.sendall(b"GET / HTTP/1.1\\r\\n\\r\\n" + bytes(64))
    job.boundary()
    ended = job.await_termination(60)
    items = collector.items()
    found, due = Counter(item for item, _ in items), Counter(expected(4000, 2))
    print(json.dumps({
        "plain": seen,
        "ended": ended,
        "lost": sum((due - found).values()),
        "doubled": sum((found - due).values()),
        "restarts": job.metrics().restarts,
        "sizes": sorted(Counter(size for _, size in items).items()),
        "heard": list(heard.values()),
        "authenticated": spark.sparkContext.getConf().get("spark.authenticate"),
        "refused": job.metrics().refused,
        "told": told,
        "queues": sorted(job.metrics().shuffle),
    }))
    collector.close()
"""


def test_rows_go_over_our_connections_and_strangers_stop_nothing(tmp_path: Path) -> None:
    """Rows of a plain query and of a flow, some of 3 MB; all that the executors open is on loopback."""
    result = ran(SCRIPT, tmp_path)
    assert all(batch["sent"] == batch["received"] for batch in result["plain"])
    assert sum(batch["sent"]["rows"] for batch in result["plain"]) >= 1000
    assert result["ended"]
    assert (result["lost"], result["doubled"], result["restarts"]) == (0, 0, 0), result["told"]
    assert result["sizes"] == [[10, 3960], [3_000_000, 40]]
    assert [len(places) for places in result["heard"]] == [2, 2], "Spark's blocks, and the other executor"
    assert all(LOOPBACK.match(place) for places in result["heard"] for place in places)
    assert result["authenticated"] == "true", "Spark's own connections, too"
    assert result["refused"] == {"0": 1, "1": 1}
    assert sorted(notice[:32] for notice in result["told"]) == [
        "executor 0 has closed 1 connecti",
        "executor 1 has closed 1 connecti",
    ]
    assert result["queues"] == ["0", "1"], "what waits before tasks is known"


UNABLE = """
import json, sys
from collections import Counter
import penstock as ps
from penstock.flow.spark_conf import LINKS, SHUFFLE
from penstock.testing.collector import Collector
from tests.spark.items import expected, numbered

if __name__ == "__main__":
    collector = Collector(sys.argv[1])
    flow = ps.Flow("unable")
    flow.source(numbered(300, rate=1000), name="numbers").sink(collector, name="out", parallelism=2)
    told = []
    conf = {SHUFFLE: LINKS, "spark.penstock.shuffle.address": "192.0.2.1"}
    job = ps.run(flow, master="local-cluster[2,3,1024]", conf=conf, on_notice=told.append)
    ended = job.await_termination(90)
    exact = Counter(collector.items()) == Counter(expected(300))
    print(json.dumps({"ended": ended, "exact": exact, "told": told}))
    collector.close()
"""


def test_executors_that_cannot_listen_use_sparks_shuffle_and_say_why(tmp_path: Path) -> None:
    """The first try finds it out, the second goes another way."""
    result = ran(UNABLE, tmp_path)
    assert result["ended"]
    assert result["exact"]
    began, ran_again, notice = result["told"]
    assert " cannot listen on 192.0.2.1 (" in began
    assert ran_again.startswith("it runs again")
    assert notice.startswith("Penstock's shuffle between executors cannot be used, Spark's own is: executor ")
    assert " cannot listen on 192.0.2.1 (" in notice
    assert notice.endswith("; spark.penstock.shuffle.address is where executors listen")
