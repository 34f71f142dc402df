"""Who carries records from topic to topic in bench `kafka`: Penstock, plain Spark, and peers as extras.

Each passes the value and the headers of a record on, through one Python function that returns what it is
given; Spark's real-time query stays in the JVM and has none.
"""

import os
import subprocess
import sys
import tempfile
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from pyspark.sql import DataFrame, SparkSession

import penstock
from penstock.bench.baselines import quiet
from penstock.bench.peer_environments import Library, python_of
from penstock.bench.throughput import same
from penstock.orphans import end_with
from penstock.processes import tree
from penstock.spark.build_bridge import BENCH_JAR
from penstock.spark.session import session
from penstock.testing.kafka_jars import cached_jars, pinned

if TYPE_CHECKING:
    import pyarrow

SLOTS: Final = 4
REAL_TIME_BATCH: Final = "5 minutes"
"""As in the benchmark that Spark itself has for this; no boundary lies in the window of a turn."""
BATCHED: Final = "20 ms"
PEERS: Final = {
    "quix_streams": Library(
        ("quixstreams==3.28.1",), "kafka_peers", "one process; its producer sends at once (linger.ms 0)"
    ),
    "bytewax": Library(
        ("bytewax[kafka]==0.21.1",),
        "kafka_peers",
        "one process of one worker; at most 100 records are read at once; no recovery",
    ),
}
_CONNECTOR: Final = Path(__file__).with_name("kafka_connector.txt")
_SCHEMA: Final = "value binary, headers array<struct<key string, value binary>>"
_ENDS_WITHIN_S: Final = 10.0


class Place(NamedTuple):
    """A broker, and the topics to read and to write."""

    servers: str
    source: str
    sink: str


class Running(NamedTuple):
    """A contestant that runs; `pids()` are its processes."""

    root: int
    without: tuple[int, ...] = ()

    def pids(self) -> list[int]:
        """Of now, the JVM and Python workers among them, and none of what belongs to the bench."""
        left_out = {pid for root in self.without for pid in tree(root)}
        return [pid for pid in tree(self.root) if pid not in left_out]


def connector_session() -> SparkSession:
    """Penstock's session, with the connector that Spark has for Kafka."""
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    jars = cached_jars(f"spark-kafka-{connector_version()}", _CONNECTOR)
    paths = [str(BENCH_JAR), *(str(jars / jar.file) for jar in pinned(_CONNECTOR))]
    return session(slots=SLOTS, conf={"spark.jars": ",".join(paths)})


def connector_version() -> str:
    """The version of Spark that the connector was made for."""
    return next(jar.version for jar in pinned(_CONNECTOR) if jar.artifact.startswith("spark-sql-kafka"))


@contextmanager
def penstock_flow(place: Place, *, lifetime: str = "0 ms", headers: bool = True) -> Iterator[int]:
    """source -> same -> sink: one shuffle on the way, the sink in the process of the task."""
    flow = penstock.Flow("topic_to_topic")
    read = penstock.kafka(place.source, servers=place.servers, metadata=headers)
    passed = flow.source(read, name="read").batched(lifetime).map(same, name="same")
    passed.batched(lifetime).forward().sink(
        penstock.to_kafka(place.sink, servers=place.servers), name="write"
    )
    job = penstock.run(flow)
    job.set_chains([["same", "write"]])
    try:
        yield os.getpid()
    finally:
        job.stop()


@contextmanager
def spark_real_time(spark: SparkSession, place: Place) -> Iterator[int]:
    """Spark's own query in real-time mode, in the JVM alone."""
    jvm: Any = spark._jvm
    trigger = jvm.org.apache.spark.sql.streaming.Trigger.RealTime(REAL_TIME_BATCH)
    with _query(spark, _read(spark, place), place, trigger):
        yield os.getpid()


@contextmanager
def spark_micro_batches(spark: SparkSession, place: Place) -> Iterator[int]:
    """Micro-batches one right after the other, with Spark's own way into Python."""
    jvm: Any = spark._jvm
    trigger = jvm.org.apache.spark.sql.streaming.Trigger.ProcessingTime(0)
    with _query(spark, _read(spark, place).mapInArrow(_same_of_batches, _SCHEMA), place, trigger):
        yield os.getpid()


@contextmanager
def peer(name: str, place: Place) -> Iterator[int]:
    """Another library for streams in Python, in a process and an environment of its own."""
    program = Path(__file__).with_name(f"{PEERS[name].program}.py")
    command = [str(python_of(PEERS[name])), "-P", str(program), name, *place]
    with (
        tempfile.TemporaryDirectory(prefix="penstock-bench-") as scratch,
        tempfile.TemporaryFile("w+") as said,
    ):
        child = subprocess.Popen(
            command,
            cwd=scratch,
            env={name: value for name, value in os.environ.items() if name != "PYTHONPATH"},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=said,
            preexec_fn=partial(end_with, os.getpid()),
        )
        try:
            yield child.pid
            if child.poll() is not None:
                said.seek(0)
                raise RuntimeError((said.read().strip().splitlines() or ["it ended by itself"])[-1])
        finally:
            child.terminate()
            with suppress(subprocess.TimeoutExpired):
                child.wait(_ENDS_WITHIN_S)
            child.kill()
            child.wait()


def _read(spark: SparkSession, place: Place) -> DataFrame:
    reader = spark.readStream.format("kafka").option("kafka.bootstrap.servers", place.servers)
    reader = reader.option("subscribe", place.source).option("startingOffsets", "earliest")
    # The last as in Spark's own benchmark; the default makes the end of a batch wait for half a second.
    reader = reader.option("includeHeaders", "true").option("kafka.fetch.max.wait.ms", "10")
    return reader.load().select("value", "headers")


@contextmanager
def _query(spark: SparkSession, rows: DataFrame, place: Place, trigger: Any) -> Iterator[None]:
    with tempfile.TemporaryDirectory(prefix="penstock-bench-") as checkpoint, quiet(spark):
        writer = rows._jdf.writeStream().format("kafka").outputMode("update").trigger(trigger)
        writer = writer.option("kafka.bootstrap.servers", place.servers).option("topic", place.sink)
        query = writer.option("checkpointLocation", checkpoint).start()
        try:
            yield
            problem = query.exception()
            if problem.isDefined():
                raise RuntimeError(problem.get().getMessage())
        finally:
            query.stop()


def _same_of_batches(batches: "Iterable[pyarrow.RecordBatch]") -> "Iterator[pyarrow.RecordBatch]":
    yield from batches
