"""A real object store on loopback (S3Proxy, in memory), and S3A for Spark; their jars from Maven Central."""

import http.client
import os
import signal
import socket
import subprocess
import tempfile
import time
import uuid
from collections.abc import Mapping
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Lock, Thread
from types import TracebackType
from typing import Any, Self

from pyspark.sql import SparkSession

from penstock.testing.kafka_jars import JarsError, cached_jars, java

SERVER = "4.0.0"
S3A = "3.5.0"
_SERVER_LIST = Path(__file__).with_name("s3proxy_jars.txt")
_S3A_LIST = Path(__file__).with_name("s3a_jars.txt")
_UP_WITHIN_S = 30.0


class S3:
    """Starts inside `with`; `JarsError` if its jars cannot be had."""

    def __enter__(self) -> Self:
        jars = cached_jars(f"s3proxy-{SERVER}", _SERVER_LIST)
        self.s3a = sorted(cached_jars(f"s3a-{S3A}", _S3A_LIST).glob("*.jar"))
        self._home = tempfile.TemporaryDirectory(prefix="s3-", ignore_cleanup_errors=True)
        home = Path(self._home.name)
        with socket.create_server(("127.0.0.1", 0)) as free:
            self.port = free.getsockname()[1]
        (home / "settings").write_text(
            f"s3proxy.endpoint=http://127.0.0.1:{self.port}\n"
            "s3proxy.authorization=none\n"
            "jclouds.provider=transient-nio2\n"
        )
        with (home / "log").open("wb") as log:
            self._process = subprocess.Popen(
                [
                    java(), "-Xmx384m", "-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC", "-cp", f"{jars}/*",
                    "org.gaul.s3proxy.Main", "--properties", str(home / "settings"),
                ],
                cwd=home, stdout=log, stderr=log, start_new_session=True,
            )  # fmt: skip
        until_s = time.monotonic() + _UP_WITHIN_S
        while not self._answers():
            if self._process.poll() is not None or time.monotonic() > until_s:
                said = (home / "log").read_text(errors="replace")[-2000:]
                self.__exit__(None, None, None)
                raise JarsError(f"no object store: {said}")
            time.sleep(0.05)
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

    def _answers(self) -> bool:
        with socket.socket() as channel:
            return channel.connect_ex(("127.0.0.1", self.port)) == 0

    def bucket(self) -> str:
        """A new one."""
        name = f"bucket-{uuid.uuid4().hex}"
        connection = http.client.HTTPConnection("127.0.0.1", self.port)
        connection.request("PUT", f"/{name}")
        assert connection.getresponse().status == 200
        connection.close()
        return name

    def settings(self, bucket: str, port: int | None = None) -> dict[str, str]:
        """Of Hadoop, to reach a bucket: at the store itself, or through who listens at that port."""
        its = f"fs.s3a.bucket.{bucket}"
        return {
            f"{its}.endpoint": f"http://127.0.0.1:{port or self.port}",
            f"{its}.endpoint.region": "us-east-1",
            f"{its}.path.style.access": "true",
            f"{its}.access.key": "any",
            f"{its}.secret.key": "any",
            f"{its}.connection.ssl.enabled": "false",
            f"{its}.multipart.size": "5M",  # the least that S3 takes
            f"{its}.buffer.dir": self._home.name,
            # S3Proxy has no tags for the markers of directories, as S3 has; a copy of one would miss it:
            f"{its}.change.detection.version.required": "false",
        }


def add_jars(spark: SparkSession, jars: list[Path]) -> None:
    """To a Spark in one process that has been started without them."""
    jvm: Any = spark._jvm
    loader = jvm.java.lang.Thread.currentThread().getContextClassLoader()
    for jar in jars:
        loader.addURL(jvm.java.io.File(str(jar)).toURI().toURL())


def set_hadoop(spark: SparkSession, settings: Mapping[str, str]) -> None:
    """In its driver, and in the executor inside it."""
    context: Any = spark.sparkContext
    for name, value in settings.items():
        context._jsc.hadoopConfiguration().set(name, value)
        context._conf.set(f"spark.hadoop.{name}", value)


class Between(ThreadingHTTPServer):
    """Between S3A and the store: every request goes on, if nothing else is said.

    `ignores` the condition of a put, as stores do that do not know it; `looks_first`, as those do that look
    for the object and then put it; `loses` the answers to that many puts that were on condition.
    """

    daemon_threads = True

    def __init__(
        self, port: int, *, ignores: bool = False, looks_first: bool = False, loses: int = 0
    ) -> None:
        super().__init__(("127.0.0.1", 0), _Forwarding)
        self.store_port = port
        self.ignores = ignores
        self.looks_first = looks_first
        self._left = loses
        self._lock = Lock()

    def __enter__(self) -> Self:
        Thread(target=self.serve_forever, args=(0.02,), daemon=True).start()
        return self

    def __exit__(self, *problem: object) -> None:
        self.shutdown()
        self.server_close()

    def is_to_lose(self) -> bool:
        with self._lock:
            self._left -= 1
            return self._left >= 0


class _Forwarding(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server: Between

    def _forward(self) -> None:
        body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
        headers = {name: value for name, value in self.headers.items() if name.lower() != "expect"}
        is_on_condition = self.headers.get("If-None-Match") is not None and self.command == "PUT"
        if is_on_condition and (self.server.ignores or self.server.looks_first):
            del headers[next(name for name in headers if name.lower() == "if-none-match")]
            if self.server.looks_first:
                status, _, _ = self._asked("HEAD", {}, b"")
                time.sleep(0.1)
                if status == 200:
                    self._answer(412, {}, b"<Error><Code>PreconditionFailed</Code></Error>")
                    return
        answer = self._asked(self.command, headers, body)
        if is_on_condition and self.server.is_to_lose():
            self.close_connection = True
            return
        self._answer(*answer)

    do_GET = do_HEAD = do_PUT = do_POST = do_DELETE = _forward  # noqa: N815 - as their caller names them

    def _asked(
        self, command: str, headers: Mapping[str, str], body: bytes
    ) -> tuple[int, dict[str, str], bytes]:
        connection = http.client.HTTPConnection("127.0.0.1", self.server.store_port)
        try:
            connection.request(command, self.path, body, dict(headers))
            found = connection.getresponse()
            return found.status, dict(found.getheaders()), found.read()
        finally:
            connection.close()

    def _answer(self, status: int, headers: Mapping[str, str], body: bytes) -> None:
        self.send_response_only(status)
        for name, value in headers.items():
            if name.lower() not in ("content-length", "transfer-encoding"):
                self.send_header(name, value)
        length = headers.get("Content-Length") if self.command == "HEAD" else len(body)
        self.send_header("Content-Length", str(length or 0))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - as its caller names it
        """It has nothing to say."""
