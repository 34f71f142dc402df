"""A sink into Kafka topics.

The producer is idempotent, so a retry of its own neither doubles a record nor changes the order of those of a
partition. `write` hands a record over and does not wait for the broker. Which records the broker has is
counted here, and until it has one the item is not acknowledged: should this process die, it comes again.
"""

from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Final

from penstock.io.kafka_client import (
    Config,
    Heard,
    KafkaError,
    ask,
    checked_config,
    in_words,
    new_client,
    revealed,
)
from penstock.io.kafka_codecs import Encode, Encoding, checked_encoding, encoder
from penstock.io.protocol import DeliveryError, SinkContext

ID_HEADER: Final = "penstock-id"
"""The header that holds the id of an item, its numbers with dots between them."""

_OURS: Final = {
    "bootstrap.servers": "give servers=",
    "enable.idempotence": "the producer is always idempotent",
    "transactional.id": "the sink has no transactions",
    "acks": "a record is acknowledged when all replicas in sync have it",
}
# Keys go to the partitions that Java's clients choose, so that topics of both can be joined.
_DEFAULTS: Final = {
    "linger.ms": 0,
    "partitioner": "murmur2_random",
    "queue.buffering.max.kbytes": 65536,  # what waits for a broker is in memory
    "client.id": "penstock",
}
_LOOK_EVERY_S: Final = 0.05


@dataclass
class ToKafka:
    """One producer for each replica."""

    topic: str | Callable[[Any], str]
    servers: str
    key: Callable[[Any], Any] | None
    value: Encoding
    config: Config = field(repr=False)
    written: int = field(init=False, default=0)
    """How many items were taken."""
    _context: SinkContext | None = field(init=False, default=None, repr=False)
    _producer: Any = field(init=False, default=None, repr=False)
    _encode: Encode | None = field(init=False, default=None, repr=False)
    _heard: Heard | None = field(init=False, default=None, repr=False)
    _on_the_way: OrderedDict[int, None] = field(init=False, default_factory=OrderedDict, repr=False)
    _undelivered: DeliveryError | None = field(init=False, default=None, repr=False)

    def open(self, context: SinkContext) -> None:
        """Connect; a topic that is named and missing is refused."""
        self._context = context
        self._encode = encoder(self.value)
        self._heard = Heard(self.servers, self.topic if isinstance(self.topic, str) else None)
        settings = {
            **_DEFAULTS,
            **revealed(self.config),
            "bootstrap.servers": self.servers,
            "enable.idempotence": True,
        }
        self._producer = new_client("Producer", settings, self._heard)
        if isinstance(self.topic, str):
            self._check_topic(self.topic)

    def write(self, item: Any) -> None:
        """Hand a record over; waits while the producer's queue is full."""
        assert self._encode is not None, "a sink is opened before it is written to"
        assert self._context is not None, "a sink is opened before it is written to"
        topic = self.topic if isinstance(self.topic, str) else self.topic(item)
        value, key = self._encode(item), self._key(item)
        number = self.written
        self._produce(topic, value, key, self._headers(self._context), number)
        self.written = number + 1
        self._on_the_way[number] = None
        self._producer.poll(0)

    def settle(self) -> int:
        """How many of the items, from the first on, the broker has by now; does not wait."""
        self._producer.poll(0)
        self._check()
        return next(iter(self._on_the_way), self.written)

    def flush(self) -> None:
        """Wait until the broker has all of them."""
        if self._producer is None:
            return
        while self._on_the_way:
            self._producer.flush(_LOOK_EVERY_S)
            self._check()

    def close(self) -> None:
        self.flush()
        self._producer = None

    @staticmethod
    def _headers(context: SinkContext) -> dict[str, bytes]:
        """Those of the item, and its id."""
        item_id = context.item_id
        own = {} if item_id is None else {ID_HEADER: ".".join(map(str, item_id)).encode()}
        return {**context.headers, **own}

    def _key(self, item: Any) -> bytes | None:
        if self.key is None:
            return None
        key = self.key(item)
        if key is None or isinstance(key, bytes):
            return key
        return str(key).encode()

    def _produce(
        self, topic: str, value: bytes, key: bytes | None, headers: dict[str, bytes], number: int
    ) -> None:
        from confluent_kafka import KafkaException

        def delivered(error: Any, _message: Any) -> None:
            if error is None:
                del self._on_the_way[number]
            elif self._undelivered is None:
                self._undelivered = DeliveryError(in_words(error, self.servers, topic))

        while True:
            self._check()
            try:
                self._producer.produce(topic, value, key, headers=headers, on_delivery=delivered)
                return
            except BufferError:  # its queue is full: this is the back-pressure of the broker
                self._producer.poll(_LOOK_EVERY_S)
            except KafkaException as problem:
                raise KafkaError(in_words(problem.args[0], self.servers, topic)) from None

    def _check(self) -> None:
        """Raise what makes further writing useless."""
        if self._undelivered is not None:
            raise self._undelivered
        if self._heard is not None and self._heard.fatal is not None:
            raise DeliveryError(str(self._heard.fatal))

    def _check_topic(self, topic: str) -> None:
        assert self._heard is not None
        client = self._producer
        known = ask(client, self._heard, lambda timeout_s: client.list_topics(timeout=timeout_s)).topics
        if topic not in known:
            raise KafkaError(
                f'Kafka at {self.servers} has no topic "{topic}": create it, or correct its name'
            )


def to_kafka(
    topic: str | Callable[[Any], str],
    *,
    servers: str,
    key: Callable[[Any], Any] | None = None,
    value: Encoding = "bytes",
    config: Config | None = None,
) -> ToKafka:
    """A topic, or a function of an item that names its topic.

    `key` is a function of an item: bytes are taken as they are, None is no key, anything else as its text.
    `value` is "bytes", "text", "json" or a function that makes bytes. The headers of an item are sent with
    it, and in a flow with ids the header "penstock-id" holds its id. `config` are settings of librdkafka;
    secrets among them are `penstock.secret(...)`.
    """
    where = f"to_kafka({topic!r})" if isinstance(topic, str) else "to_kafka"
    if not callable(topic) and not (isinstance(topic, str) and topic):
        raise KafkaError(f"{where}: give the name of a topic, or a function of an item that names it")
    if key is not None and not callable(key):
        raise KafkaError(f"{where}: key must be a function of an item, not {key!r}")
    return ToKafka(
        topic, servers, key, checked_encoding(value, f"{where}: value"), checked_config(config, _OURS, where)
    )
