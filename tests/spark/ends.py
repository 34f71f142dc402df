"""Two executors in one Java without Spark, as far as their connections and the channels on them know."""

import struct
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import pytest
from py4j.java_gateway import GatewayParameters, JavaGateway, launch_gateway

from penstock.spark.build_bridge import JAR, pyspark_home

HOST = "127.0.0.1"
ROOM = 1000
GREETING = struct.pack(">IB", 0x50454E31, 0)


def waits(call: Callable[[], None]) -> Callable[[], bool]:
    """Whether a call in a thread of its own still waits, after a moment."""
    thread = threading.Thread(target=call, daemon=True)
    thread.start()

    def still() -> bool:
        thread.join(0.3)
        return thread.is_alive()

    return still


def one_way(body: bytes) -> bytes:
    """A message of Spark's transport that wants no answer, in the clear."""
    return struct.pack(">qbi", 13 + len(body), 9, len(body)) + body


def wait_for(condition: Callable[[], bool]) -> None:
    deadline = time.monotonic() + 20
    while not condition():
        assert time.monotonic() < deadline, "waited too long"
        time.sleep(0.01)


@contextmanager
def java() -> Iterator[Any]:
    """Java with Spark's classes and no Spark."""
    jars = pyspark_home() / "jars"
    port, token = launch_gateway(
        jarpath=str(next(jars.glob("py4j-*.jar"))),
        classpath=f"{JAR}:{jars}/*",
        javaopts=[
            f"--add-opens=java.base/{place}=ALL-UNNAMED" for place in ("java.nio", "sun.nio.ch", "java.util")
        ],
        die_on_exit=True,
        enable_auth=True,
    )
    gateway = JavaGateway(
        gateway_parameters=GatewayParameters(port=port, auth_token=token, auto_convert=True)
    )
    yield gateway.jvm
    gateway.shutdown()


def settings_of_links(jvm: Any, settings: dict[str, str]) -> Any:
    """Those of connections where Spark has these."""
    conf = jvm.org.apache.spark.SparkConf(False)
    for key, value in settings.items():
        conf.set(key, value)
    return jvm.org.apache.spark.penstock.LinkShuffleManager.transportConf(conf, jvm.scala.Option.empty())


class Ends:
    """Two executors, as far as their connections know."""

    def __init__(self, jvm: Any, settings: dict[str, str]) -> None:
        self.jvm = jvm
        self.ours = jvm.org.apache.spark.penstock
        self.conf = settings_of_links(jvm, settings)
        self.writing = self.links("1", "s3cret", 10_000)
        self.reading = self.links("2", "s3cret", 10_000)

    def links(self, name: str, secret: str, large_bytes: int = 0, at: str = HOST) -> Any:
        secrets = self.ours.ShuffleSecret.holding(secret)
        return self.ours.Links(name, HOST, at, self.conf, secrets, large_bytes)

    def close(self) -> None:
        self.writing.close()
        self.reading.close()

    def watch(self) -> Any:
        contexts = getattr(getattr(self.jvm.org.apache.spark, "TaskContext$"), "MODULE$")
        return self.ours.TaskWatch(contexts.empty())

    def sender(self, ahead_bytes: int = 0) -> Any:
        """Of a writer that may have so much waiting."""
        bridge = self.jvm.org.penstock.bridge
        return bridge.Sender(bridge.ShuffleMemory(1 << 30).share(), ahead_bytes)

    def row(self, number: int, size: int = 16) -> Any:
        content = bytes(8) + struct.pack("<q", number) + bytes(size - 16)
        made = self.jvm.org.apache.spark.sql.catalyst.expressions.UnsafeRow(1)
        made.pointTo(content, 16, size)
        return made

    def refused(self) -> int:
        return int(self.ours.Refusals.count())

    @contextmanager
    def stranger(self, secret: str = "s3cret") -> Iterator[Any]:
        """A client of Spark's transport that says what it likes."""
        network = self.jvm.org.apache.spark.network
        context = network.TransportContext(self.conf, network.server.NoOpRpcHandler())
        holder = self.ours.ShuffleSecret.holding(secret)
        proof = network.crypto.AuthClientBootstrap(self.conf, "penstock", holder)
        factory = context.createClientFactory(self.jvm.java.util.List.of(proof))
        try:
            yield factory.createUnmanagedClient(HOST, self.reading.port())
        finally:
            factory.close()
            context.close()

    def inbox(self, writers: int) -> Any:
        """Of a reader, with room for so many writers."""
        return self.jvm.org.penstock.bridge.Inbox(writers, ROOM * writers)

    def channel(self, inbox: Any) -> Any:
        """Of an inbox, whose rows the connection counts."""
        return inbox.channel(self.jvm.org.penstock.bridge.Sender.counted())


class Channel:
    """A channel from one of the two ends to the other, with its writer and its inbox."""

    def __init__(
        self,
        ends: Ends,
        shuffle: int = 1,
        map_id: int = 7,
        inbox: Any = None,
        *,
        port: int | None = None,
        outlets: Any = None,
        reader: int = 0,
    ) -> None:
        self.ends = ends
        self.watch = ends.watch()
        self.inbox = ends.inbox(1) if inbox is None else inbox
        outlets = outlets or ends.writing.register(shuffle, map_id, 1, ends.sender())
        self.outlet = outlets[reader]
        self.link = ends.reading.to("1", HOST, port or ends.writing.port())
        self.incoming = self.link.open(shuffle, map_id, reader, ends.channel(self.inbox), ROOM, self.watch)
        self.sink = self.outlet.sink(self.watch)

    def put(self, number: int, size: int = 16) -> None:
        self.sink.put(0, self.ends.row(number, size), self.watch)

    def hears_of_failure(self) -> bool:
        """Whether the writer knows, when it writes, that nobody reads."""
        self.put(0)
        return bool(self.watch.hasFailed())

    def take(self) -> int | None:
        """The number of the next row; its room is given back."""
        row = self.inbox.take(2000)
        if row is None:
            return None
        self.incoming.taken(row.bytes())
        return int(row.content().getLong(0))


ENCRYPTED = {"spark.network.crypto.enabled": "true"}
BY_SASL = {"spark.authenticate.enableSaslEncryption": "true"}
in_every_way = pytest.mark.parametrize(
    "settings", [{}, ENCRYPTED, BY_SASL], ids=["plain", "encrypted", "by the setting of SASL"]
)
