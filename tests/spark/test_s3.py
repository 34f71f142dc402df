"""A checkpoint on S3: its log and files of state, and stores that are refused."""

import json
import os
import subprocess
import sys
import uuid
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

import penstock as ps
from penstock.epochs.remote_storage import RemoteStorage
from penstock.spark.directory import Directory
from penstock.spark.hadoop_files import HadoopFiles, refusal
from penstock.testing.kafka_jars import JarsError
from tests.epochs.crashing_disk import Crash
from tests.epochs.test_log import check_after_a_crash, drive
from tests.spark.items import numbered
from tests.spark.s3 import S3, Between, add_jars, set_hadoop
from tests.spark.test_cluster import ran
from tests.spark.test_hdfs import (  # the same flows there
    KILLED,
    Ending,
    test_a_driver_that_was_replaced_finds_out,  # noqa: F401
    test_a_file_that_cannot_be_uploaded_sends_the_flow_back,  # noqa: F401
    test_files_appear_whole_once_and_are_named,  # noqa: F401
    test_files_that_sinks_prepare_come_to_the_driver,  # noqa: F401
    test_state_is_exact_over_a_stop_and_a_death,  # noqa: F401
)

pytestmark = pytest.mark.spark


@pytest.fixture(scope="module")
def s3() -> Iterator[S3]:
    try:
        started = S3().__enter__()
    except JarsError as problem:
        pytest.skip(str(problem))
    yield started
    started.__exit__(None, None, None)


@pytest.fixture(scope="module")
def bucket(s3: S3, spark: SparkSession) -> str:
    if not (spark.sparkContext.master or "").startswith("local["):
        pytest.skip("executors of their own were started without the jars of S3A")
    add_jars(spark, s3.s3a)
    name = s3.bucket()
    set_hadoop(spark, s3.settings(name))
    return name


@pytest.fixture
def address(bucket: str) -> str:
    return f"s3a://{bucket}/{uuid.uuid4().hex}"


Through = Callable[[Between], str]


@pytest.fixture
def through(s3: S3, spark: SparkSession, bucket: str) -> Through:
    """An address that is reached through another server."""

    def address(between: Between) -> str:
        name = s3.bucket()
        set_hadoop(spark, s3.settings(name, between.server_port))
        return f"s3a://{name}/{uuid.uuid4().hex}"

    return address


def test_so_do_files_that_are_put_in_parts(spark: SparkSession, address: str) -> None:
    files = HadoopFiles(spark, address)
    content = bytes(12_000_000)
    assert files.create("state/1", content)
    assert not files.create("state/1", b"1" * 12_000_000)
    assert files.read("state/1") == content


def test_of_two_that_make_one_file_one_succeeds(spark: SparkSession, address: str) -> None:
    both = [HadoopFiles(spark, address), HadoopFiles(spark, address)]
    with ThreadPoolExecutor(2) as threads:
        for name in (f"log/{number}" for number in range(100)):
            asked = [threads.submit(files.create, name, bytes([mark])) for mark, files in enumerate(both)]
            made = [one.result() for one in asked]
            assert sorted(made) == [False, True]
            assert both[0].read(name) == bytes([made.index(True)])


def test_who_made_a_file_and_was_not_told_finds_it_to_be_its_own(
    spark: SparkSession, through: Through, s3: S3
) -> None:
    """An answer is lost, the request is sent again, and the store says that there is such an object."""
    with Between(s3.port, loses=1) as between:
        address = through(between)
        assert HadoopFiles(spark, address).create("log/1", b"one")


def test_of_two_with_the_same_content_that_were_not_told_one_succeeds(
    spark: SparkSession, through: Through, s3: S3
) -> None:
    """Fences of two drivers that start at once do not differ."""
    with Between(s3.port, loses=2) as between:
        address = through(between)
        assert HadoopFiles(spark, address).create("log/1", b"fence")
        assert not HadoopFiles(spark, address).create("log/1", b"fence")


@pytest.mark.parametrize("kind", ["ignores", "looks_first"])
def test_a_store_that_does_not_keep_to_the_condition_is_refused(
    spark: SparkSession, through: Through, s3: S3, kind: str
) -> None:
    with Between(s3.port, **{kind: True}) as between:
        address = through(between)
        words = str(refusal(spark, address))
        assert words.startswith("its store does not keep to If-None-Match (")
        assert "so two drivers could commit at once" in words
        flow = ps.Flow("refused")
        flow.source(numbered(1), name="numbers").sink(print, name="out")
        with pytest.raises(ps.FlowError, match=r"commits cannot be marks in s3a://.*: its store does not"):
            ps.run(flow, checkpoint=address, commit_by="marks")


def test_one_that_does_is_not_and_nothing_is_left_of_the_trial(spark: SparkSession, address: str) -> None:
    assert refusal(spark, address) is None
    assert Directory(spark, address).names("") == []


def test_settings_that_forbid_the_condition_are_named(spark: SparkSession, s3: S3, bucket: str) -> None:
    name = s3.bucket()
    set_hadoop(spark, s3.settings(name) | {f"fs.s3a.bucket.{name}.create.conditional.enabled": "false"})
    assert "as fs.s3a.create.conditional.enabled is false" in str(refusal(spark, f"s3a://{name}/flow"))


def test_the_log_survives_the_end_of_its_driver_at_every_operation(spark: SparkSession, address: str) -> None:
    for at in range(1, 21):
        files = HadoopFiles(spark, f"{address}/{at}")
        told: list[str] = []
        with pytest.raises(Crash):
            drive(RemoteStorage(Ending(files, at)), told, "a")
        check_after_a_crash(RemoteStorage(files), told, at)


@pytest.mark.slow
def test_state_on_separate_executors_survives_one_of_them(
    s3: S3, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With the jars as users name them; the command line is told where they are, too."""
    name = s3.bucket()
    address, jars = f"s3a://{name}/flow", ",".join(map(str, s3.s3a))
    settings = s3.settings(name)
    conf = {f"spark.hadoop.{key}": value for key, value in settings.items()}
    monkeypatch.setenv("ADDRESS", address)
    monkeypatch.setenv("CONF", json.dumps({"spark.jars": jars, **conf}))
    found = ran(KILLED, tmp_path)
    assert found["ended"]
    assert found["restarts"] >= 1
    assert found["seen"] == {str(key): 400 for key in range(10)}
    assert found["taken"] == 4000
    said = "".join(
        f"<property><name>{key}</name><value>{value}</value></property>" for key, value in settings.items()
    )
    (tmp_path / "core-site.xml").write_text(f"<configuration>{said}</configuration>")
    shown = subprocess.run(
        [Path(sys.executable).with_name("penstock"), "state", address],
        env=os.environ
        | {"HADOOP_CONF_DIR": str(tmp_path), "PYSPARK_SUBMIT_ARGS": f"--jars {jars} pyspark-shell"},
        capture_output=True,
        text=True,
        check=True,
    )
    assert "counts" in shown.stdout
