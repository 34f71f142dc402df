"""Hadoop in a JVM: that of Spark, or one without Spark for whoever only looks at files."""

import subprocess
from dataclasses import dataclass
from functools import cache
from typing import Any

from pyspark.java_gateway import launch_gateway
from pyspark.sql import SparkSession


@dataclass(frozen=True, slots=True)
class Hadoop:
    """`jvm` as py4j shows it, and Hadoop's settings there."""

    jvm: Any
    configuration: Any

    @classmethod
    def of(cls, spark: SparkSession) -> "Hadoop":
        """Spark's."""
        jsc: Any = spark.sparkContext._jsc
        return cls(spark._jvm, jsc.hadoopConfiguration())

    @classmethod
    def found(cls) -> "Hadoop":
        """Spark's if there is one; else a new JVM, which ends with this process and has no Spark.

        It finds the settings of a cluster by HADOOP_CONF_DIR.
        """
        present = SparkSession.getActiveSession()
        if present is not None:
            return cls.of(present)
        jvm = _without_spark()
        return cls(jvm, jvm.org.apache.hadoop.conf.Configuration())


@cache
def _without_spark() -> Any:
    gateway = launch_gateway(popen_kwargs={"stderr": subprocess.DEVNULL})  # type: ignore[no-untyped-call]
    return gateway.jvm
