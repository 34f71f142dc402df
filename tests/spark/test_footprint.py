"""What an executor takes of its machine: its Java, and everything that this has started."""

import json
import os
import sys
from typing import Any

import pytest
from pyspark.sql import SparkSession

pytestmark = pytest.mark.spark

HOLDS = "import sys; held = bytearray(300 << 20); print('there', flush=True); sys.stdin.read()"


def told(spark: SparkSession) -> dict[str, Any]:
    jvm: Any = spark._jvm
    told: dict[str, Any] = json.loads(jvm.org.penstock.bridge.Footprint().next())
    return told


def test_memory_of_processes_that_it_started_counts(spark: SparkSession) -> None:
    jvm: Any = spark._jvm
    before = told(spark)
    command = jvm.java.util.ArrayList()
    for word in (sys.executable, "-S", "-c", HOLDS):
        command.add(word)
    child = jvm.java.lang.ProcessBuilder(command).start()
    try:
        assert child.inputReader().readLine() == "there"
        during = told(spark)
    finally:
        child.destroy()
        child.waitFor()
    grown = (during["memory_bytes"] - before["memory_bytes"]) / 2**20
    assert 250 < grown < 600
    assert told(spark)["memory_bytes"] < during["memory_bytes"]


def test_cpu_time_is_that_of_java_since_the_last_look(spark: SparkSession) -> None:
    jvm: Any = spark._jvm
    footprint = jvm.org.penstock.bridge.Footprint()
    footprint.next()
    work = jvm.java.util.stream.IntStream.range(0, 300_000_000)
    assert work.average().getAsDouble() > 0
    busy = json.loads(footprint.next())
    assert 0 < busy["java_s"] <= busy["over_s"] * busy["cores"] * 1.1
    assert busy["java_s"] > 0.01
    assert 1 <= busy["cores"] <= (os.cpu_count() or 1)
