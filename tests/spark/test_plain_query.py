"""A query of Spark that knows nothing of Penstock, over Penstock's shuffle inside one process."""

from pathlib import Path

import pytest

from tests.spark.test_cluster import ran

pytestmark = pytest.mark.spark

# In a process of its own: the jar of its source must be there when Java starts.
SCRIPT = """
import json, time
from penstock.spark.build_bridge import BENCH_JAR
from penstock.spark.session import session
from tests.spark.plain_query import repartitioned

if __name__ == "__main__":
    spark = session(8, None, {"spark.jars": str(BENCH_JAR)})
    manager, in_use = spark._jvm.org.apache.spark.penstock.HandoverShuffleManager, []
    batches = repartitioned(spark, look=lambda: in_use.append(manager.inUse()))
    deadline = time.monotonic() + 5
    while manager.inUse() and time.monotonic() < deadline:
        time.sleep(0.05)
    print(json.dumps({"batches": batches, "in_use": max(in_use), "left": manager.inUse()}))
"""


def test_a_plain_query_of_spark_goes_over_it(tmp_path: Path) -> None:
    result = ran(SCRIPT, tmp_path)
    assert sum(batch["sent"]["rows"] for batch in result["batches"]) >= 1000
    assert all(batch["sent"] == batch["received"] for batch in result["batches"])
    assert (result["in_use"], result["left"]) == (1, 0)
