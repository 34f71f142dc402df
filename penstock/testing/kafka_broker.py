"""A real Kafka broker on loopback, for tests and demos."""

import os
import secrets
import socket
import subprocess
import tempfile
import time
from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path
from types import TracebackType
from typing import Any, Final

from penstock.extras import require
from penstock.orphans import end_with
from penstock.testing.kafka_jars import cached_jars, java

USER: Final = "penstock"
"""The one user that the secured listener knows."""

_CLUSTER: Final = "cGVuc3RvY2stY2x1c3Rlcg"  # any sixteen bytes in base 64
_UP_WITHIN_S: Final = 120.0
_ANSWER_WITHIN_S: Final = 60.0
_PROTOCOLS: Final = "OPEN:PLAINTEXT,SECURED:SASL_PLAINTEXT,TLS:SSL,CONTROLLER:PLAINTEXT"
_KEYS_PASSWORD: Final = "of a broker that lives for seconds"
# A broker for tests lives for seconds: quick to start, small, and in nobody's way.
_JVM: Final = (
    "-Xms64m",
    "-Xmx256m",
    "-XX:+UseSerialGC",
    "-XX:TieredStopAtLevel=1",
    "-XX:+PerfDisableSharedMem",
)


class BrokerError(RuntimeError):
    """The broker did not start; the message ends with what it said."""


class KafkaBroker:
    """One node that is broker and controller, or a broker `beside` it; topics are not made by themselves.

    It runs inside `with`, and its files go with it. `servers` is where clients find it. With a `password`,
    `secured_servers` is where only the user "penstock" with it is let in (SASL, PLAIN). With `tls`,
    `tls_servers` is where it is spoken to in TLS, by those who believe its `certificate`. On a busy machine
    it may not hear itself for seconds, and gives itself up after `silent_s`; so long a killed one stays away.
    """

    def __init__(
        self,
        *,
        password: str | None = None,
        tls: bool = False,
        silent_s: float = 9.0,
        beside: "KafkaBroker | None" = None,
    ) -> None:
        require("confluent_kafka", "kafka", "KafkaBroker")
        self._beside = beside
        self.node: Final = 1 if beside is None else 2
        self._password = password
        self._tls = tls
        self._silent_s = silent_s
        self._ports = _free_ports(4)
        self._home: tempfile.TemporaryDirectory[str] | None = None
        self._process: subprocess.Popen[bytes] | None = None

    @property
    def servers(self) -> str:
        """Its address, without any security."""
        return f"127.0.0.1:{self._ports[0]}"

    @property
    def secured_servers(self) -> str:
        """Its address for those who have the password."""
        return f"127.0.0.1:{self._ports[1]}"

    @property
    def tls_servers(self) -> str:
        """Its address for those who speak TLS."""
        return f"127.0.0.1:{self._ports[3]}"

    @property
    def certificate(self) -> Path:
        """A file with what its clients have to believe, in PEM."""
        assert self._home is not None, "a broker is used inside `with`"
        return Path(self._home.name) / "certificate.pem"

    @property
    def pid(self) -> int | None:
        """Its process, while it runs."""
        return None if self._process is None else self._process.pid

    def __enter__(self) -> "KafkaBroker":
        jars = cached_jars()
        self._home = tempfile.TemporaryDirectory(prefix="kafka-", ignore_cleanup_errors=True)
        self._classpath = f"{jars}/*"
        place = Path(self._home.name)
        settings = place / "server.properties"
        settings.touch(mode=0o600)
        settings.write_text("\n".join(f"{key}={value}" for key, value in self._settings(place).items()))
        try:
            if self._tls:
                self._certify(place)
            self._format(place / "data")
            self.start()
        except BaseException:
            self.__exit__(None, None, None)
            raise
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        problem: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.kill()
        if self._home is not None:
            self._home.cleanup()
            self._home = None

    def start(self, silent_s: float | None = None) -> None:
        """Start it, again if it was killed, with all that it held; returns when it answers.

        One that was killed takes part again only when its last session is over: after `silent_s`, which is
        that of the broker unless it is given.
        """
        assert self._home is not None, "a broker is used inside `with`"
        settings = {} if silent_s is None else _patience(silent_s)
        overrides = [word for name, value in settings.items() for word in ("--override", f"{name}={value}")]
        self._process = self._run("kafka.Kafka", str(Path(self._home.name) / "server.properties"), *overrides)
        deadline = time.monotonic() + _UP_WITHIN_S
        while not self._answers():
            if self._process.poll() is not None or time.monotonic() > deadline:
                said = (Path(self._home.name) / "broker.log").read_text(errors="replace")[-2000:]
                self.kill()
                raise BrokerError(f"no Kafka broker at {self.servers}: {said}")

    def kill(self) -> None:
        """End it at once; what was acknowledged is kept."""
        if self._process is not None:
            self._process.kill()
            self._process.wait()
            self._process = None

    def stop(self) -> None:
        """End it in good order: a broker beside it leads from then on what both have."""
        if self._process is not None:
            self._process.terminate()
            self._process.wait()
            self._process = None

    def leader(self, topic: str, partition: int = 0) -> int | None:
        """The node that leads a partition as far as this one knows; None as long as it knows of none."""
        known = self._admin().list_topics(topic=topic, timeout=_ANSWER_WITHIN_S).topics[topic]
        found = known.partitions.get(partition)
        return None if found is None or found.leader < 0 else int(found.leader)

    def create_topic(
        self,
        name: str,
        partitions: int = 1,
        config: Mapping[str, str | int] | None = None,
        nodes: Sequence[int] = (1,),
    ) -> None:
        """A topic that these nodes hold, the first of them as leader; returns when it can be written to."""
        from confluent_kafka.cimpl import NewTopic

        admin = self._admin()
        settings = {key: str(value) for key, value in (config or {}).items()}
        topic = NewTopic(name, partitions, replica_assignment=[[*nodes]] * partitions, config=settings)
        admin.create_topics([topic])[name].result(_ANSWER_WITHIN_S)
        self._await_leaders(admin, name, partitions)

    def add_partitions(self, name: str, total: int) -> None:
        """So that a topic has so many; returns when they can be written to."""
        from confluent_kafka.cimpl import NewPartitions

        admin = self._admin()
        admin.create_partitions([NewPartitions(name, total)])[name].result(_ANSWER_WITHIN_S)
        self._await_leaders(admin, name, total)

    def _await_leaders(self, admin: Any, name: str, partitions: int) -> None:
        deadline = time.monotonic() + _UP_WITHIN_S
        while time.monotonic() < deadline:
            known = admin.list_topics(topic=name, timeout=_ANSWER_WITHIN_S).topics[name].partitions
            if len(known) == partitions and all(one.leader >= 0 for one in known.values()):
                return
            time.sleep(0.02)
        raise BrokerError(f"the {partitions} partitions of topic {name} were made, and have no leader")

    def delete_topic(self, name: str) -> None:
        """Gone with all its records."""
        admin = self._admin()  # a client that nobody holds ends, and its questions with it
        admin.delete_topics([name])[name].result(_ANSWER_WITHIN_S)

    def forget(self, topic: str, partition: int, before: int) -> None:
        """Delete the records before an offset, as the retention of a topic does."""
        from confluent_kafka import TopicPartition

        admin = self._admin()
        for done in admin.delete_records([TopicPartition(topic, partition, before)]).values():
            done.result(_ANSWER_WITHIN_S)

    def _admin(self) -> Any:
        from confluent_kafka.admin import AdminClient

        # A broker may name one that is gone as the one to ask: it is asked again soon, not after minutes.
        settings: dict[str, str | int | float | bool] = {
            "bootstrap.servers": self.servers,
            "log_level": 0,
            "topic.metadata.refresh.interval.ms": 500,
            "reconnect.backoff.max.ms": 500,
        }
        return AdminClient(settings)

    def _answers(self) -> bool:
        from confluent_kafka import KafkaException

        try:
            return bool(self._admin().list_topics(timeout=1).brokers)
        except KafkaException:
            return False

    def _run(self, *arguments: str) -> subprocess.Popen[bytes]:
        assert self._home is not None
        with (Path(self._home.name) / "broker.log").open("ab") as log:
            return subprocess.Popen(
                [java(), *_JVM, "-cp", self._classpath, *arguments],
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                preexec_fn=partial(end_with, os.getpid()),
            )

    def _settings(self, place: Path) -> dict[str, str | int]:
        open_port, secured_port, own_port, tls_port = self._ports
        controller_port = own_port if self._beside is None else self._beside._ports[2]
        secured = self._password is not None
        listeners = f"OPEN://127.0.0.1:{open_port}" + (f",SECURED://127.0.0.1:{secured_port}" * secured)
        listeners += f",TLS://127.0.0.1:{tls_port}" * self._tls
        settings: dict[str, str | int] = {
            "process.roles": "broker,controller" if self._beside is None else "broker",
            "node.id": self.node,
            "controller.quorum.voters": f"1@127.0.0.1:{controller_port}",
            "controller.listener.names": "CONTROLLER",
            "inter.broker.listener.name": "OPEN",
            "listeners": listeners + f",CONTROLLER://127.0.0.1:{own_port}" * (self._beside is None),
            "advertised.listeners": listeners,
            "listener.security.protocol.map": _PROTOCOLS,
            "log.dirs": str(place / "data"),
            "auto.create.topics.enable": "false",
            "offsets.topic.num.partitions": 1,
            "offsets.topic.replication.factor": 1,
            "transaction.state.log.replication.factor": 1,
            "transaction.state.log.min.isr": 1,
            "num.network.threads": 2,
            "num.io.threads": 2,
            **_patience(self._silent_s),
        }
        if secured:
            login = "org.apache.kafka.common.security.plain.PlainLoginModule required"
            settings["sasl.enabled.mechanisms"] = "PLAIN"
            settings["listener.name.secured.plain.sasl.jaas.config"] = (
                f'{login} user_{USER}="{self._password}";'
            )
        if self._tls:
            settings["listener.name.tls.ssl.keystore.type"] = "PKCS12"
            settings["listener.name.tls.ssl.keystore.location"] = str(place / "keys.p12")
            settings["listener.name.tls.ssl.keystore.password"] = _KEYS_PASSWORD
        return settings

    def _format(self, data: Path) -> None:
        """What Kafka's StorageTool writes, without a second start of Java."""
        data.mkdir()
        known = {
            "version": 1,
            "cluster.id": _CLUSTER,
            "node.id": self.node,
            "directory.id": "B" + secrets.token_urlsafe(16)[1:],  # none begins with "-"
        }
        (data / "meta.properties").write_text("".join(f"{key}={value}\n" for key, value in known.items()))

    def _certify(self, place: Path) -> None:
        """A key of its own, and the certificate that goes with it."""
        keytool = str(Path(java()).with_name("keytool"))
        common = ("-alias", "broker", "-storepass", _KEYS_PASSWORD, "-keystore", str(place / "keys.p12"))
        made = ("-keyalg", "EC", "-storetype", "PKCS12", "-dname", "CN=127.0.0.1", "-ext", "san=ip:127.0.0.1")
        for step in (
            ("-genkeypair", *common, *made),
            ("-exportcert", "-rfc", *common, "-file", str(self.certificate)),
        ):
            done = subprocess.run([keytool, *step], capture_output=True, text=True, check=False)
            if done.returncode != 0:
                raise BrokerError(f"no certificate for the broker: {done.stdout}{done.stderr}")


def _patience(silent_s: float) -> dict[str, str | int]:
    """How long a broker may be silent, and how often it says something."""
    return {
        "broker.session.timeout.ms": round(1000 * silent_s),
        "broker.heartbeat.interval.ms": round(1000 * min(2.0, silent_s / 6)),
    }


def _free_ports(count: int) -> list[int]:
    """Ports of loopback that nobody uses, all at once so that they differ."""
    held = [socket.create_server(("127.0.0.1", 0)) for _ in range(count)]
    ports = [one.getsockname()[1] for one in held]
    for one in held:
        one.close()
    return ports
