"""A real HDFS on loopback: a name node and a data node in one process, and its jar from Maven Central."""

import importlib.util
import os
import signal
import subprocess
import tempfile
import time
from pathlib import Path
from types import TracebackType
from typing import Self

import msgspec

from penstock.testing.kafka_jars import JarsError, cached_jars, java

VERSION = "3.5.0"
_LIST = Path(__file__).with_name("hdfs_jars.txt")
_UP_WITHIN_S = 90.0


class Hdfs:
    """Starts inside `with`; `JarsError` if its jar cannot be had."""

    def __enter__(self) -> Self:
        jar = cached_jars(f"hdfs-{VERSION}", _LIST)
        spec = importlib.util.find_spec("pyspark")
        assert spec is not None
        assert spec.origin is not None
        self._home = tempfile.TemporaryDirectory(prefix="hdfs-", ignore_cleanup_errors=True)
        home = Path(self._home.name)
        details = home / "details.json"
        with (home / "log").open("wb") as log:
            self._process = subprocess.Popen(
                [
                    java(), "-Xmx384m", "-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC",
                    f"-Dtest.build.data={home}/data", f"-Dhadoop.log.dir={home}/logs",
                    "-cp", f"{jar}/*:{Path(spec.origin).parent}/jars/*",
                    "org.apache.hadoop.mapreduce.MiniHadoopClusterManager",
                    "-nomr", "-format", "-datanodes", "1", "-writeDetails", str(details),
                    "-D", "dfs.namenode.fs-limits.min-block-size=1024",
                ],
                cwd=home, stdout=log, stderr=log, start_new_session=True,
            )  # fmt: skip
        until_s = time.monotonic() + _UP_WITHIN_S
        while not details.exists() or not details.read_bytes().endswith(b"}"):
            if self._process.poll() is not None or time.monotonic() > until_s:
                said = (home / "log").read_text(errors="replace")[-2000:]
                self.__exit__(None, None, None)
                raise JarsError(f"no HDFS: {said}")
            time.sleep(0.1)
        found = msgspec.json.decode(details.read_bytes(), type=dict[str, str | int])
        self.address = f"hdfs://127.0.0.1:{found['namenode_port']}"
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        problem: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if self._process.poll() is None:
            os.killpg(self._process.pid, signal.SIGKILL)
            self._process.wait()
        self._home.cleanup()
