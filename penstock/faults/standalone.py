"""A standalone cluster of Spark on hosts of its own: the master on the first, a worker on each of them."""

import contextlib
import os
import signal
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

import pyspark
from pyspark.sql import SparkSession

from penstock.faults.hosts import Host
from penstock.faults.victims import wait_until
from penstock.spark.session import all_slots

STARTED_S = 60.0
_PORT = 7077


@contextlib.contextmanager
def standalone(hosts: list[Host], cores: int, place: Path) -> Iterator[str]:
    """The master's address; every worker has so many cores. `place` is for logs and what executors write."""
    master = f"spark://{hosts[0].address}:{_PORT}"
    started: list[subprocess.Popen[bytes]] = []
    try:
        started.append(
            _daemon(hosts[0], place / "master", "master.Master", "--port", str(_PORT), "--webui-port", "0")
        )
        for host in hosts:
            options = ["--cores", str(cores), "--memory", "1g", "--webui-port", "0"]
            where = place / host.name
            started.append(_daemon(host, where, "worker.Worker", *options, "-d", str(where), master))
        _await_registered(place / "master" / "log", len(hosts))
        yield master
    finally:
        for process in reversed(started):
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
            process.wait()


def _daemon(host: Host, place: Path, name: str, *options: str) -> subprocess.Popen[bytes]:
    place.mkdir(parents=True)
    home = Path(pyspark.__file__).parent
    argv = [str(home / "bin" / "spark-class"), f"org.apache.spark.deploy.{name}", "--host", host.address]
    environment = {**os.environ, "SPARK_LOCAL_IP": host.address, "SPARK_HOME": str(home)}
    with (place / "log").open("wb") as log:
        return subprocess.Popen(
            host.command([*argv, *options]),
            stdout=log,
            stderr=subprocess.STDOUT,
            env=environment,
            start_new_session=True,
        )


def _await_registered(log: Path, count: int) -> None:
    deadline = time.monotonic() + STARTED_S
    while log.read_text().count("Registering worker") < count:
        if time.monotonic() > deadline:
            raise TimeoutError(f"the cluster has not started:\n{log.read_text()[-2000:]}")
        time.sleep(0.1)


def await_slots(spark: SparkSession, count: int) -> None:
    """Until all executors are there: Spark shares the replicas of a task evenly among them."""
    wait_until(lambda: all_slots(spark) == count, f"{count} slots are there", STARTED_S)
