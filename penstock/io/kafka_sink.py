"""A sink into Kafka topics.

The producer is idempotent, so a retry of its own neither doubles a record nor changes the order of those of a
partition. `write` hands a record over and does not wait for the broker. Which records the broker has is
counted here, and until it has one the item is not acknowledged: should this process die, it comes again.
"""

from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Final

from penstock.io.kafka_client import (
    RECONNECT_MS,
    Config,
    Heard,
    KafkaError,
    ask,
    checked_config,
    in_words,
    new_client,
    revealed,
)
from penstock.io.kafka_codecs import Encoding, checked_encoding, field_encoder
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
    "reconnect.backoff.max.ms": RECONNECT_MS,
    "client.id": "penstock",
}
_LOOK_EVERY_S: Final = 0.05
_TOGETHER: Final = 64


@dataclass(slots=True, eq=False)
class _Handed:
    """Some records that were handed over one after the other, from number `first` on.

    The broker does not have `left` of them. They are counted together, since a record by itself would cost as
    much as handing it over.
    """

    first: int
    left: int = 0


@dataclass
class ToKafka:
    """One producer for each replica."""

    topic: str | Callable[[Any], str]
    servers: str
    key: Callable[[Any], Any] | None
    value: Encoding
    encode_key: Encoding | None
    config: Config = field(repr=False)
    written: int = field(init=False, default=0)
    """How many items were taken."""
    _context: SinkContext | None = field(init=False, default=None, repr=False)
    _producer: Any = field(init=False, default=None, repr=False)
    _encode: Callable[[str, Any, dict[str, bytes]], bytes] | None = field(
        init=False, default=None, repr=False
    )
    _key_of: Callable[[str, Any, dict[str, bytes]], bytes | None] | None = field(
        init=False, default=None, repr=False
    )
    _heard: Heard = field(init=False, repr=False, compare=False)
    _refusal: type[Exception] = field(init=False, default=Exception, repr=False)
    _handed: deque[_Handed] = field(init=False, default_factory=deque, repr=False)
    _newest: _Handed | None = field(init=False, default=None, repr=False)
    _delivered: Callable[[Any, Any], None] | None = field(init=False, default=None, repr=False)
    _undelivered: DeliveryError | None = field(init=False, default=None, repr=False)

    def open(self, context: SinkContext) -> None:
        """Connect; a topic that is named and missing is refused."""
        from confluent_kafka import KafkaException

        self._refusal = KafkaException
        self._context = context
        self._encode = field_encoder("value", self.value)
        self._key_of = None if self.key is None else self._encoded_key(self.key)
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
        headers = self._headers(self._context)
        key = None if self._key_of is None else self._key_of(topic, item, headers)
        value = self._encode(topic, item, headers)
        newest = self._newest
        if newest is None or self.written - newest.first >= _TOGETHER:
            newest = self._begin()
        self._produce(topic, value, key, headers or None)
        newest.left += 1
        self.written += 1

    def settle(self) -> int:
        """How many of the items, from the first on, the broker has by now; does not wait."""
        self._producer.poll(0)
        self._check()
        handed = self._handed
        while handed and not handed[0].left:
            handed.popleft()
        self._newest = None  # others are not to be waited for on account of those that follow
        return handed[0].first if handed else self.written

    def flush(self) -> None:
        """Wait until the broker has all of them."""
        if self._producer is None:
            return
        while self.settle() < self.written:
            self._producer.flush(_LOOK_EVERY_S)

    def close(self) -> None:
        self.flush()
        self._producer = None

    @staticmethod
    def _headers(context: SinkContext) -> dict[str, bytes]:
        """Those of the item, and its id."""
        headers, item_id = context.headers, context.item_id
        if item_id is None:
            return {**headers}
        return {**headers, ID_HEADER: ".".join(map(str, item_id)).encode()}

    def _encoded_key(
        self, key_of: Callable[[Any], Any]
    ) -> Callable[[str, Any, dict[str, bytes]], bytes | None]:
        encode = field_encoder("key", _bytes_or_text if self.encode_key is None else self.encode_key)

        def encoded(topic: str, item: Any, headers: dict[str, bytes]) -> bytes | None:
            key = key_of(item)
            return None if key is None else encode(topic, key, headers)

        return encoded

    def _begin(self) -> _Handed:
        """The records that come now are counted together; a moment to hear of those that were before."""
        self._producer.poll(0)
        handed = self._newest = _Handed(self.written)
        self._handed.append(handed)

        def delivered(error: Any, message: Any) -> None:
            if error is None:
                handed.left -= 1
            elif self._undelivered is None:
                self._undelivered = DeliveryError(in_words(error, self.servers, message.topic()))

        self._delivered = delivered
        return handed

    def _produce(self, topic: str, value: bytes, key: bytes | None, headers: dict[str, bytes] | None) -> None:
        while True:
            if self._undelivered is not None or self._heard.fatal is not None:
                self._check()
            try:
                self._producer.produce(topic, value, key, headers=headers, on_delivery=self._delivered)
                return
            except BufferError:  # its queue is full: this is the back-pressure of the broker
                self._producer.poll(_LOOK_EVERY_S)
            except self._refusal as problem:
                raise KafkaError(in_words(problem.args[0], self.servers, topic)) from None

    def _check(self) -> None:
        """Raise what makes further writing useless."""
        if self._undelivered is not None:
            raise self._undelivered
        if self._heard.fatal is not None:
            raise DeliveryError(str(self._heard.fatal))

    def _check_topic(self, topic: str) -> None:
        client = self._producer
        known = ask(client, self._heard, lambda timeout_s: client.list_topics(timeout=timeout_s)).topics
        if topic not in known:
            raise KafkaError(
                f'Kafka at {self.servers} has no topic "{topic}": create it, or correct its name'
            )


def _bytes_or_text(key: Any) -> bytes:
    return key if isinstance(key, bytes) else str(key).encode()


def to_kafka(
    topic: str | Callable[[Any], str],
    *,
    servers: str,
    key: Callable[[Any], Any] | None = None,
    value: Encoding = "bytes",
    encode_key: Encoding | None = None,
    config: Config | None = None,
) -> ToKafka:
    """A topic, or a function of an item that names its topic.

    `key` is a function of an item: bytes are taken as they are, None is no key, anything else as its text,
    unless `encode_key` says how. `value` is "bytes", "text", "json", a function that makes bytes, or a
    `TopicEncoder`, which is told of topic and headers; so is `encode_key`. The headers of an item are sent
    with it, and in a flow with ids the header "penstock-id" holds its id. `config` are settings of
    librdkafka; secrets among them are `penstock.secret(...)`.
    """
    where = f"to_kafka({topic!r})" if isinstance(topic, str) else "to_kafka"
    if not callable(topic) and not (isinstance(topic, str) and topic):
        raise KafkaError(f"{where}: give the name of a topic, or a function of an item that names it")
    if key is not None and not callable(key):
        raise KafkaError(f"{where}: key must be a function of an item, not {key!r}")
    if encode_key is not None and key is None:
        raise KafkaError(f"{where}: encode_key says how keys are written; give key= too")
    checked_encoding(value, f"{where}: value")
    if encode_key is not None:
        checked_encoding(encode_key, f"{where}: encode_key")
    return ToKafka(topic, servers, key, value, encode_key, checked_config(config, _OURS, where))
