"""One Spark for all tests of the runtime, and a check after each that nothing was left behind.

PENSTOCK_TEST_MASTER="local-cluster[2,24,1024]" runs them on separate executors (`make test-cluster`), and
PENSTOCK_TEST_SHUFFLE names the shuffle between these.
"""

import os
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from penstock.faults.drivers import SHORT_LIVED
from penstock.flow.spark_conf import SHUFFLE
from penstock.spark.session import session
from penstock.testing.collector import Collector

SLOTS = 48


@pytest.fixture(scope="session")
def private_tmp() -> Iterator[Path]:
    """A temporary directory of our own, so that what others leave in the common one does not count."""
    with tempfile.TemporaryDirectory(prefix="pt-", dir="/tmp", ignore_cleanup_errors=True) as place:
        usual, tempfile.tempdir = tempfile.tempdir, place
        yield Path(place)
        tempfile.tempdir = usual


@pytest.fixture(scope="session")
def spark(private_tmp: Path) -> Iterator[SparkSession]:
    master = os.environ.get("PENSTOCK_TEST_MASTER")
    options = f"{SHORT_LIVED} -Djava.io.tmpdir={private_tmp}"
    conf = {"spark.driver.extraJavaOptions": options, "spark.executor.extraJavaOptions": options}
    shuffle = os.environ.get("PENSTOCK_TEST_SHUFFLE")
    if shuffle:
        conf[SHUFFLE] = shuffle
    started = session(SLOTS, master, conf)
    yield started
    active = SparkSession.getActiveSession()
    if active is not None:
        active.stop()


@pytest.fixture(autouse=True)
def nothing_left(request: pytest.FixtureRequest) -> Iterator[None]:
    """After a test of a flow: no worker process, no thread of ours, no private directory."""
    yield
    if "spark" not in request.fixturenames:
        return
    deadline = time.monotonic() + 5
    while (left := leftovers()) and time.monotonic() < deadline:
        time.sleep(0.05)
    assert not left


@pytest.fixture
def collector() -> Iterator[Collector]:
    made = Collector()
    yield made
    made.close()


def private_directories() -> list[str]:
    places = Path(tempfile.gettempdir()).glob("penstock-*")
    return [str(p) for p in places if not p.name.startswith("penstock-collector-")]


def leftovers() -> list[str]:
    spark = SparkSession.getActiveSession()
    threads = []
    if spark is not None and spark._jvm is not None:
        stacks = spark._jvm.java.lang.Thread.getAllStackTraces()
        names = [thread.getName() for thread in stacks.keySet()]
        threads = [n for n in names if n.startswith("penstock-") and n != "penstock-agent"]
    return worker_processes() + threads + private_directories()


def worker_processes() -> list[str]:
    """Processes below this one that run the workers' parent module."""
    found = []
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                command = (entry / "cmdline").read_bytes().decode(errors="replace")
            except OSError:
                continue
            if "penstock.worker.zygote" in command and descends_from_here(int(entry.name)):
                found.append(f"process {entry.name}: {command}")
    return found


def descends_from_here(pid: int) -> bool:
    while pid > 1:
        if pid == os.getpid():
            return True
        try:
            fields = Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()
        except OSError:
            return False
        pid = int(fields[1])
    return False
