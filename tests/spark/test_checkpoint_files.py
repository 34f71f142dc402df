"""The files of Spark's log on a local disk: whole, never written over, and no program is started for them."""

from pathlib import Path
from typing import Any

import pytest
from py4j.protocol import Py4JJavaError
from pyspark.sql import SparkSession

from penstock.bench.baselines import SPARKS_FILES

pytestmark = pytest.mark.spark
OURS = "org.apache.spark.penstock.CheckpointFiles"


class Log:
    """A directory of a checkpoint, as Spark sees it."""

    def __init__(self, spark: SparkSession, place: Path, files: str = OURS) -> None:
        self.place = place
        jvm: Any = spark._jvm
        self._path = jvm.org.apache.hadoop.fs.Path
        made: Any = jvm
        for name in files.split("."):
            made = getattr(made, name)
        self._files = made(self.path(""), spark.sparkContext._jsc.hadoopConfiguration())

    def path(self, name: str) -> Any:
        return self._path(f"file:{self.place}/{name}" if name else f"file:{self.place}")

    def begin(self, name: str, content: bytes, *, overwrite: bool = False) -> Any:
        stream = self._files.createAtomic(self.path(name), overwrite)
        stream.write(content)
        return stream

    def read(self, name: str) -> bytes:
        stream = self._files.open(self.path(name))
        try:
            return bytes(stream.readAllBytes())
        finally:
            stream.close()

    def names(self) -> list[str]:
        return sorted(path.name for path in self.place.iterdir())


@pytest.fixture
def log(spark: SparkSession, tmp_path: Path) -> Log:
    return Log(spark, tmp_path)


def test_a_file_is_there_when_it_is_whole(log: Log) -> None:
    stream = log.begin("0", b"first")
    assert "0" not in log.names()
    stream.close()
    assert log.names() == ["0"]
    assert log.read("0") == b"first"


def test_one_that_is_there_stays_as_it_is(log: Log) -> None:
    log.begin("0", b"first").close()
    with pytest.raises(Py4JJavaError) as caught:
        log.begin("0", b"second").close()
    assert caught.value.java_exception.getClass().getSimpleName() == "FileAlreadyExistsException"
    assert log.read("0") == b"first"


def test_unless_that_is_wanted(log: Log, spark: SparkSession) -> None:
    Log(spark, log.place, SPARKS_FILES).begin("0", b"first").close()
    assert log.names() == [".0.crc", "0"], "Hadoop has sums"
    log.begin("0", b"second", overwrite=True).close()
    assert log.names() == ["0"]
    assert log.read("0") == b"second"


def test_one_that_is_given_up_leaves_nothing(log: Log) -> None:
    log.begin("0", b"first").cancel()
    assert log.names() == []


def test_programs_are_not_started_for_it(log: Log, spark: SparkSession, tmp_path: Path) -> None:
    """Each takes a number of a process; threads of others do so too."""
    own = _processes_for(log)
    sparks = tmp_path / "sparks"
    sparks.mkdir()
    assert own < _processes_for(Log(spark, sparks, SPARKS_FILES)) / 2


def _processes_for(log: Log) -> int:
    before = _last_process()
    for number in range(20):
        log.begin(str(number), b"entry").close()
    they_begin_anew_at = int(Path("/proc/sys/kernel/pid_max").read_text())
    return (_last_process() - before) % they_begin_anew_at


def _last_process() -> int:
    return int(Path("/proc/loadavg").read_text().split()[-1])
