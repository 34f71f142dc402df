"""A plain real-time query of Spark over the shuffle of its session: without Python, and the rest is Spark."""

import json
import time
from collections.abc import Callable
from typing import Any

from pyspark.sql import SparkSession
from pyspark.sql import functions as F  # noqa: N812 - as everybody calls it

from penstock.bench.baselines import quiet

SHORTEST_BATCH = "spark.sql.streaming.realTimeMode.minBatchDuration"


def repartitioned(
    spark: SparkSession, least: int = 1000, look: Callable[[], object] = lambda: None
) -> list[dict[str, Any]]:
    """How many rows were sent and received in each batch, and what they were; `look` while it runs."""
    jvm: Any = spark._jvm
    rows = spark.readStream.format("org.penstock.bench.PacedRows").option("rate", "2000").load()
    sums = [F.count("seq").alias("rows"), F.sum("seq").alias("sum"), F.bit_xor(F.hash("seq")).alias("all")]
    spread = rows.observe("sent", *sums).repartition(5).observe("received", *sums)
    writer = spread.writeStream.format("noop").outputMode("update")
    trigger = jvm.org.apache.spark.sql.streaming.Trigger.RealTime("1 second")
    found: list[dict[str, Any]] = []
    spark.conf.set(SHORTEST_BATCH, "500")
    with quiet(spark):
        query = writer._jwrite.trigger(trigger).start()
        deadline = time.monotonic() + 60
        while sum(batch["sent"]["rows"] for batch in found) < least and time.monotonic() < deadline:
            time.sleep(0.05)
            look()
            found = [json.loads(progress.json())["observedMetrics"] for progress in query.recentProgress()]
        query.stop()
    spark.conf.unset(SHORTEST_BATCH)
    return found
