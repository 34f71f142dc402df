"""Plain Spark, for comparison: the same rows, the same clock, none of Penstock between source and sink."""

import os
import sys
import tempfile
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy
from numpy.typing import NDArray
from pyspark.sql import DataFrame, SparkSession

from penstock.bench.latency_summary import LatencySummary
from penstock.flow.spark_conf import FILES
from penstock.spark.build_bridge import BENCH_JAR
from penstock.spark.session import session
from penstock.spark.spark_logs import silenced

if TYPE_CHECKING:
    import pyarrow

ALLOWLIST = "spark.sql.streaming.realTimeMode.allowlistCheck"
SPARKS_FILES = "org.apache.spark.sql.execution.streaming.checkpointing.FileContextBasedCheckpointFileManager"
SCHEMA = "seq bigint, due bigint, payload binary"
FIRST_ROW_S = 30.0
LOOK_MS = 100
Shape = Callable[[DataFrame], DataFrame]


@dataclass(frozen=True, slots=True)
class Rows:
    """What arrived at the JVM's sink: row numbers, due and arrival times."""

    seq: NDArray[numpy.int64]
    due_ns: NDArray[numpy.int64]
    arrived_ns: NDArray[numpy.int64]

    def after(self, warm_up_s: float) -> "Rows":
        """The rows that were due when the warm-up was over, which begins with the first arrival."""
        if not len(self.seq):
            return self
        kept = self.due_ns >= self.arrived_ns.min() + warm_up_s * 1e9
        return Rows(self.seq[kept], self.due_ns[kept], self.arrived_ns[kept])

    def summary(self) -> LatencySummary | None:
        distinct = numpy.unique(self.seq)
        span = int(distinct[-1] - distinct[0]) + 1 if len(distinct) else 0
        latency_ms = (self.arrived_ns - self.due_ns).astype(numpy.float64) * 1e-6
        lost, duplicated = span - len(distinct), len(self.seq) - len(distinct)
        return LatencySummary.of(latency_ms, lost=lost, duplicated=duplicated)


def bench_session(slots: int, conf: Mapping[str, str] | None = None) -> SparkSession:
    """Penstock's own session, in which Spark's Python workers run this interpreter too."""
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    return session(slots=slots, conf={**(conf or {}), "spark.jars": str(BENCH_JAR)})


def jvm_hop(width: int) -> Shape:
    """One shuffle and nothing else."""
    return lambda rows: rows.repartition(width)


def jvm_hops(width: int) -> Shape:
    """Two shuffles with an operator of `width` partitions between them, and one partition at the sink."""

    def shape(rows: DataFrame) -> DataFrame:
        jvm = rows.sparkSession._jvm
        assert jvm is not None
        encoder = jvm.org.apache.spark.sql.Encoders.row(rows._jdf.schema())
        between = rows.repartition(width)._jdf.mapPartitions(jvm.org.penstock.bench.Unchanged(), encoder)
        return DataFrame(between, rows.sparkSession).repartition(1)

    return shape


def arrow_hop(width: int) -> Shape:
    """One shuffle and Spark's own way into Python."""
    return lambda rows: rows.repartition(width).mapInArrow(_unchanged, SCHEMA)


def real_time(spark: SparkSession, shape: Shape, rate_per_s: float, seconds: float, trigger: str) -> Rows:
    """Run a shape in real-time mode with batches as long as `trigger`, for a time after the first arrival."""
    assert spark._jvm is not None
    return _ran(
        spark, shape, rate_per_s, seconds, spark._jvm.org.apache.spark.sql.streaming.Trigger.RealTime(trigger)
    )


def micro_batch(
    spark: SparkSession,
    shape: Shape,
    rate_per_s: float,
    seconds: float,
    begun: Callable[[], object] | None = None,
) -> Rows:
    """Run a shape in micro-batches, one right after the other, for a time after the first arrival.

    That is told.
    """
    assert spark._jvm is not None
    trigger = spark._jvm.org.apache.spark.sql.streaming.Trigger.ProcessingTime(0)
    return _ran(spark, shape, rate_per_s, seconds, trigger, begun)


def _ran(
    spark: SparkSession,
    shape: Shape,
    rate_per_s: float,
    seconds: float,
    trigger: Any,
    begun: Callable[[], object] | None = None,
) -> Rows:
    assert spark._jvm is not None
    sink = spark._jvm.org.penstock.bench.LatencySink
    rows = spark.readStream.format("org.penstock.bench.PacedRows").option("rate", str(rate_per_s)).load()
    with tempfile.TemporaryDirectory(prefix="penstock-bench-") as checkpoint, quiet(spark):
        sink.drain()
        writer = shape(rows)._jdf.writeStream().foreach(sink()).outputMode("update")
        query = writer.option("checkpointLocation", checkpoint).trigger(trigger).start()
        try:
            # Spark's own Python workers take seconds to start: a turn begins when rows come out.
            patience_s = FIRST_ROW_S
            while sink.count() == 0 and patience_s > 0 and not query.awaitTermination(LOOK_MS):
                patience_s -= LOOK_MS / 1000
            if begun is not None:
                begun()
            query.awaitTermination(round(seconds * 1000))
        finally:
            query.stop()
        table = numpy.frombuffer(bytes(sink.drain()), dtype=">i8").reshape(-1, 3).astype(numpy.int64)
    return Rows(table[:, 0], table[:, 1], table[:, 2])


@contextmanager
def quiet(spark: SparkSession) -> Iterator[None]:
    """Python is not on the list of real-time mode; Spark's files are written as it does by default."""
    wanted = {ALLOWLIST: "false", FILES: SPARKS_FILES}
    before = {key: spark.conf.get(key, None) for key in wanted}
    for key, value in wanted.items():
        spark.conf.set(key, value)
    try:
        with silenced(spark.sparkContext):
            yield
    finally:
        for key, known in before.items():
            spark.conf.unset(key) if known is None else spark.conf.set(key, known)


def _unchanged(batches: "Iterator[pyarrow.RecordBatch]") -> "Iterator[pyarrow.RecordBatch]":
    yield from batches
