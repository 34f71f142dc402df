"""What source and sink have in common: settings, secrets, and what a broker's errors mean in words."""

import logging
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from importlib import import_module
from typing import Any, Final

from penstock.extras import require
from penstock.flow.errors import FlowError
from penstock.io.secret import Secret

Config = Mapping[str, "str | int | float | bool | Secret"]

ANSWER_WITHIN_S: Final = 10.0
"""How long a broker has to answer when a flow is declared or started."""

RECONNECT_MS: Final = 1000
"""A broker that was away is looked for at least that often; librdkafka alone waits for up to 10 s."""

# Keys go to the partitions that Java's clients choose, so that topics of both can be joined.
PRODUCER: Final = {
    "linger.ms": 0,
    "partitioner": "murmur2_random",
    "queue.buffering.max.kbytes": 65536,  # what waits for a broker is in memory
    "reconnect.backoff.max.ms": RECONNECT_MS,
    "client.id": "penstock",
}
"""Settings of producers, unless the user has others."""

_log = logging.getLogger("penstock.kafka")

_SECRET: Final = frozenset(
    {
        "sasl.password",
        "sasl.oauthbearer.client.secret",
        "sasl.oauthbearer.config",
        "ssl.key.password",
        "ssl.key.pem",
        "ssl.keystore.password",
    }
)


class KafkaError(FlowError):
    """A broker that does not answer, refuses, or lacks what a flow asks for; the message says which."""


def checked_config(config: Config | None, ours: Mapping[str, str], where: str) -> dict[str, Any]:
    """The user's settings of librdkafka; `ours` are those that are said in another way, and how."""
    given = dict(config or {})
    for name, value in given.items():
        if name in ours:
            raise KafkaError(f"{where}: config may not hold {name}: {ours[name]}")
        if name in _SECRET and not isinstance(value, Secret):
            raise KafkaError(
                f"{where}: {name} is a secret; name the place where it is, as in"
                f' config={{"{name}": penstock.secret(env="KAFKA_PASSWORD")}}'
            )
    return given


def revealed(config: Config) -> dict[str, Any]:
    """The settings with the secrets themselves, for a client of this process."""
    return {name: value.reveal() if isinstance(value, Secret) else value for name, value in config.items()}


class Heard:
    """What a client says by itself: an error that no waiting will mend, and the newest of the others."""

    def __init__(self, servers: str, topic: str | None = None) -> None:
        self.servers = servers
        self._topic = topic
        self.fatal: KafkaError | None = None
        self.newest = ""

    def hear(self, error: Any) -> None:
        """For `error_cb`."""
        if is_refusal(error):
            self.fatal = KafkaError(in_words(error, self.servers, self._topic))
        elif error.str() != self.newest:
            self.newest = error.str()
            _log.warning("%s", in_words(error, self.servers, self._topic))

    def check(self) -> None:
        """Raise what no waiting will mend."""
        if self.fatal is not None:
            raise self.fatal


def in_words(error: Any, servers: str, topic: str | None = None) -> str:
    """An error of a client or a broker, for the user."""
    from confluent_kafka import KafkaError as Code

    about = "a topic" if topic is None else f'topic "{topic}"'
    code, said = error.code(), error.str()
    if code in (Code._ALL_BROKERS_DOWN, Code._TRANSPORT, Code._TIMED_OUT, Code._RESOLVE):
        return f"no Kafka broker answers at {servers} ({said})"
    if code in (Code._AUTHENTICATION, Code.SASL_AUTHENTICATION_FAILED):
        return f"Kafka at {servers} refuses the user or the password ({said})"
    # A client that is in use gives up a partition ("destroyed") only when its topic was deleted.
    gone = (Code.UNKNOWN_TOPIC_OR_PART, Code._UNKNOWN_TOPIC, Code._UNKNOWN_PARTITION, Code._DESTROY)
    if code in gone:
        lacks = "no such topic" if topic is None else f"no {about}"
        return f"Kafka at {servers} has {lacks}: create it, or correct its name ({said})"
    if code in (
        Code.TOPIC_AUTHORIZATION_FAILED,
        Code.GROUP_AUTHORIZATION_FAILED,
        Code.CLUSTER_AUTHORIZATION_FAILED,
    ):
        return f"Kafka at {servers} does not let this user use {about} ({said})"
    if code == Code.MSG_SIZE_TOO_LARGE:
        return (
            f"a record is too large for {about} at {servers} ({said}); with config={{"
            '"message.max.bytes": N}, N being the max.message.bytes of the topic, such items go the way of'
            " on_error"
        )
    if code == Code._MSG_TIMED_OUT:
        return f"Kafka at {servers} did not take a record for {about} in time (message.timeout.ms)"
    return f"Kafka at {servers}: {said}"


def is_refusal(error: Any) -> bool:
    """Whether trying again cannot help."""
    from confluent_kafka import KafkaError as Code

    return bool(error.fatal()) or error.code() in (
        Code._AUTHENTICATION,
        Code.SASL_AUTHENTICATION_FAILED,
        Code.UNKNOWN_TOPIC_OR_PART,
        Code._UNKNOWN_TOPIC,
        Code._UNKNOWN_PARTITION,
        Code.TOPIC_AUTHORIZATION_FAILED,
        Code.GROUP_AUTHORIZATION_FAILED,
        Code.CLUSTER_AUTHORIZATION_FAILED,
    )


def new_client(kind: str, settings: Mapping[str, Any], heard: Heard) -> Any:
    """A Consumer, Producer or AdminClient; settings that librdkafka does not know are refused by name."""
    require("confluent_kafka", "kafka", "Kafka")
    import confluent_kafka

    where = import_module("confluent_kafka.admin") if kind == "AdminClient" else confluent_kafka
    try:
        return getattr(where, kind)({**settings, "error_cb": heard.hear}, logger=_quiet())
    except confluent_kafka.KafkaException as problem:
        raise KafkaError(f"config for Kafka: {problem.args[0].str()}") from None


def _quiet() -> logging.Logger:
    """What librdkafka logs comes again as an error, in words."""
    logger = logging.getLogger("penstock.kafka.client")
    logger.setLevel(logging.CRITICAL)
    return logger


def ask(client: Any, heard: Heard, question: Callable[[float], Any], topic: str | None = None) -> Any:
    """The answer of a broker to a call with a timeout, which is repeated until it has had its time."""
    from confluent_kafka import KafkaException

    deadline = time.monotonic() + ANSWER_WITHIN_S
    while True:
        try:
            return question(1.0)
        except KafkaException as problem:
            client.poll(0)  # hears what has gone wrong with the connection
            heard.check()
            error = problem.args[0]
            if is_refusal(error):
                raise KafkaError(in_words(error, heard.servers, topic)) from None
            if time.monotonic() > deadline:
                because = heard.newest or error.str()
                raise KafkaError(
                    f"no Kafka broker answers at {heard.servers} within {ANSWER_WITHIN_S:.0f} s ({because})"
                ) from None


def check_topic(client: Any, heard: Heard, topic: str) -> None:
    """Refuse one that is missing."""
    known = ask(client, heard, lambda timeout_s: client.list_topics(timeout=timeout_s)).topics
    if topic not in known:
        raise KafkaError(f'Kafka at {heard.servers} has no topic "{topic}": create it, or correct its name')


@contextmanager
def asking(servers: str, config: Config) -> Iterator[tuple[Any, Heard]]:
    """A consumer for a few questions."""
    heard = Heard(servers)
    settings = {**revealed(config), "bootstrap.servers": servers, "group.id": "penstock"}
    client = new_client("Consumer", settings, heard)
    try:
        yield client, heard
    finally:
        client.close()
