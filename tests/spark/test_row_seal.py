"""Rows that cross Spark's own shuffle between executors: who has not the secret cannot put one in."""

import os
from typing import Any

import pytest
from py4j.protocol import Py4JJavaError
from pyspark.sql import SparkSession

pytestmark = pytest.mark.spark
SECRET = "of the session"


def seal(spark: SparkSession, secret: str = SECRET, shuffle: int = 3) -> Any:
    jvm: Any = spark._jvm
    return jvm.org.apache.spark.penstock.RowSeal(secret, shuffle)


def row(spark: SparkSession, value: int) -> Any:
    """Of one field, after its null bits."""
    jvm: Any = spark._jvm
    made = jvm.org.apache.spark.sql.catalyst.expressions.UnsafeRow(1)
    made.pointTo(bytes(8) + value.to_bytes(8, "little"), 16)
    return made


def test_a_row_is_opened_as_it_was_sealed(spark: SparkSession) -> None:
    sealed = seal(spark).sealed(7, row(spark, 42))
    assert sealed.getSizeInBytes() == 16 + 32
    seal(spark).open(7, sealed)
    assert sealed.getSizeInBytes() == 16
    assert sealed.getLong(0) == 42


@pytest.mark.parametrize(
    ("secret", "shuffle", "partition"), [("another", 3, 7), (SECRET, 4, 7), (SECRET, 3, 8)]
)
def test_the_secret_the_shuffle_and_the_partition_count(
    spark: SparkSession, secret: str, shuffle: int, partition: int
) -> None:
    sealed = seal(spark, secret, shuffle).sealed(partition, row(spark, 42))
    refused = refusal(spark, sealed)
    assert "shuffle 3 brought a row that no executor of this application has sealed" in refused


def test_a_row_that_was_changed_or_has_no_seal_is_refused_and_counted(spark: SparkSession) -> None:
    jvm: Any = spark._jvm
    before = jvm.org.apache.spark.penstock.Refusals.count()
    changed = seal(spark).sealed(7, row(spark, 42))
    changed.setLong(0, 43)
    assert "SecurityException" in refusal(spark, changed)
    assert "SecurityException" in refusal(spark, row(spark, 42))
    assert jvm.org.apache.spark.penstock.Refusals.count() == before + 2


@pytest.mark.skipif("PENSTOCK_TEST_MASTER" in os.environ, reason="there Spark has a secret of its own")
def test_without_a_secret_nothing_is_sent(spark: SparkSession) -> None:
    jvm: Any = spark._jvm
    context: Any = spark.sparkContext._jsc
    ours = jvm.org.apache.spark.penstock
    ours.ShuffleSecret.know(jvm.java.util.Map.of())
    try:
        with pytest.raises(Py4JJavaError) as caught:
            ours.RowSeal.of(3)
    finally:
        ours.ShuffleSecret.made(context.sc().conf())
    assert str(caught.value.java_exception) == (
        "java.lang.SecurityException: the rows of shuffle 3 cannot be sealed, so they are not sent:"
        " spark.authenticate is off, and the Penstock plugin, which would make a secret, is not loaded"
    )
    assert ours.RowSeal.of(3).sealed(7, row(spark, 42)).getSizeInBytes() == 16 + 32


def refusal(spark: SparkSession, sealed: Any) -> str:
    with pytest.raises(Py4JJavaError) as caught:
        seal(spark).open(7, sealed)
    return str(caught.value.java_exception)
