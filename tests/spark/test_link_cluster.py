"""Penstock's shuffle between two executors: a plain query, a flow, large items, strangers at its ports."""

from pathlib import Path

import pytest

from tests.spark.huge import COUNT, HUGE_BYTES
from tests.spark.test_cluster import ran
from tests.spark.test_neighbours import LOOPBACK

pytestmark = pytest.mark.spark

SCRIPT = """
import json, os, socket, sys, time
from collections import Counter, defaultdict
from pathlib import Path
import penstock as ps
from penstock.faults.leftovers import connected, listening
from penstock.faults.victims import executors
from penstock.flow.spark_conf import LINKS, SHUFFLE
from penstock.spark.build_bridge import BENCH_JAR
from penstock.spark.session import session
from penstock.testing.collector import Collector
from tests.spark.huge import huge_flow, shown
from tests.spark.items import assert_ordered, expected, numbered
from tests.spark.plain_query import repartitioned

MASTER = "local-cluster[2,8,1024]"
CONF = {SHUFFLE: LINKS, "spark.jars": str(BENCH_JAR)}

class Padded:
    def open(self, context):
        self.replica = context.replica

    def process(self, item, out):
        out((item, self.replica, bytes(3_000_000 if item.index % 100 == 0 else 10)))

class Measured:
    def open(self, context):
        self.replica = context.replica

    def process(self, padded, out):
        item, sender, content = padded
        out((item, (sender, self.replica), len(content)))

def port(address):
    return int(address.split(":")[1], 16)

def ends_of_links(spark):
    '''Of connections to where executors listen for each other: executor, ports and socket.'''
    infos = spark.sparkContext._jsc.sc().statusTracker().getExecutorInfos()
    heard = {port(place) for pid in executors() for place in listening(pid)} - {info.port() for info in infos}
    return sorted(
        (pid, port(local), port(remote), socket)
        for pid in executors()
        for local, remote, socket in connected(pid)
        if heard & {port(local), port(remote)}
    )

if __name__ == "__main__":
    spark = session(16, MASTER, CONF)
    seen = repartitioned(spark)
    collector = Collector(sys.argv[1])
    flow = ps.Flow("linked")
    source = flow.source(numbered(4000, rate=1500, partitions=2), name="numbers")
    padded = source.task(Padded, name="padded", parallelism=3).by_key(lambda padded: padded[0].index % 7)
    padded.task(Measured, name="measured", parallelism=3).sink(collector, name="out")
    told = []
    job = ps.run(flow, master=MASTER, conf=CONF, on_notice=told.append)
    while not collector.items():
        job.await_termination(0.1)
    links = ends_of_links(spark)
    heard = {pid: listening(pid) for pid in executors()}
    for place in sum(heard.values(), []):
        with socket.create_connection(("127.0.0.1", port(place)), timeout=5) as caller:
            caller.sendall(b"GET / HTTP/1.1\\r\\n\\r\\n" + bytes(64))
    before = len(collector.items())
    job.boundary()
    while len(collector.items()) == before < 4000:
        job.await_termination(0.1)
    links_after = ends_of_links(spark)
    ended = job.await_termination(60)
    items = collector.items()
    found, due = Counter(item for item, _, _ in items), Counter(expected(4000, 2))
    channels = defaultdict(list)
    for item, channel, _ in items:
        channels[channel].append(item)
    for channel in channels.values():
        assert_ordered(channel)
    collector.clear()
    gate = Path(sys.argv[1]).parent / "gate"
    huge = ps.run(huge_flow(collector, gate), master=MASTER, conf=CONF)
    held = shown(huge, gate)
    print(json.dumps({
        "plain": seen,
        "ended": ended,
        "lost": sum((due - found).values()),
        "doubled": sum((found - due).values()),
        "restarts": job.metrics().restarts,
        "channels": len(channels),
        "links": links,
        "links_after": links_after,
        "sizes": sorted(Counter(size for _, _, size in items).items()),
        "heard": list(heard.values()),
        "authenticated": spark.sparkContext.getConf().get("spark.authenticate"),
        "refused": job.metrics().refused,
        "told": told,
        "queues": sorted(job.metrics().shuffle),
        "huge": sorted((item.index, size) for item, size in collector.items()),
        "held": held,
    }))
    collector.close()
"""


def test_rows_go_over_our_connections_and_strangers_stop_nothing(tmp_path: Path) -> None:
    """Rows of a plain query and of flows, some of 3 and 63 MiB; all that executors open is on loopback.

    Between them there is one connection, the same after a boundary, and rows keep their order in a channel.
    """
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
    assert result["channels"] == 3 * 3, "each was looked at for its order"
    one, other = result["links"]
    assert one[0] != other[0]
    assert one[1:3] == other[2:0:-1], "two ends of one connection"
    assert result["links_after"] == result["links"]
    assert result["huge"] == [[index, HUGE_BYTES] for index in range(COUNT)]
    assert max(used for used, _ in result["held"]) > HUGE_BYTES, "one waited"
    assert all(used <= most for used, most in result["held"])
    assert all(2 * 128 <= most >> 20 <= 2 * 128 + 1 for _, most in result["held"]), "and room before replicas"


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
    assert notice.startswith("Penstock's shuffle cannot be used, Spark's own is: executor ")
    assert " cannot listen on 192.0.2.1 (" in notice
    assert notice.endswith("; spark.penstock.shuffle.address is where executors listen")
