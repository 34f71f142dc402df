"""A sink into Kafka topics.

The producer is idempotent, so a retry of its own neither doubles a record nor changes the order of those of a
partition. `write` hands a record over and does not wait for the broker. Which records the broker has is
counted here, and until it has one the item is not acknowledged: should this process die, it comes again.
"""

import math
import time
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Final, Literal, overload

from penstock.io.kafka_client import (
    PRODUCER,
    Config,
    Heard,
    KafkaError,
    check_topic,
    checked_config,
    in_words,
    new_client,
    revealed,
)
from penstock.io.kafka_codecs import Encoding, checked_encoding
from penstock.io.kafka_once import ToKafkaOnce
from penstock.io.kafka_records import Made, Writing
from penstock.io.protocol import DeliveryError, SinkContext

_OURS: Final = {
    "bootstrap.servers": "give servers=",
    "enable.idempotence": "the producer is always idempotent",
    "transactional.id": "exactly_once=True makes one of the checkpoint's and the sink's names",
    "acks": "a record is acknowledged when all replicas in sync have it",
}
_LOOK_EVERY_S: Final = 0.05
_TOGETHER: Final = 64
_TIMEOUT_MS: Final = 300_000  # the client's own
_GRACE_S: Final = 30.0  # it says so itself, as a rule within a second


def _patience_s(timeout_ms: Any) -> float:
    """After how long without news of any record nobody will hear of them; 0 means never, as there."""
    seconds = float(timeout_ms) / 1000
    return seconds + _GRACE_S if seconds else math.inf


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

    writing: Writing
    servers: str
    config: Config = field(repr=False)
    written: int = field(init=False, default=0)
    """How many items were taken."""
    _producer: Any = field(init=False, default=None, repr=False)
    _make: Callable[[Any], Made] | None = field(init=False, default=None, repr=False)
    _heard: Heard = field(init=False, repr=False, compare=False)
    _refusal: type[Exception] = field(init=False, default=Exception, repr=False)
    _handed: deque[_Handed] = field(init=False, default_factory=deque, repr=False)
    _newest: _Handed | None = field(init=False, default=None, repr=False)
    _delivered: Callable[[Any, Any], None] | None = field(init=False, default=None, repr=False)
    _undelivered: DeliveryError | None = field(init=False, default=None, repr=False)
    _patience_s: float = field(init=False, default=math.inf, repr=False)

    def open(self, context: SinkContext) -> None:
        """Connect; a topic that is named and missing is refused."""
        from confluent_kafka import KafkaException

        self._refusal = KafkaException
        self._make = self.writing.open(context)
        topic = self.writing.named
        self._heard = Heard(self.servers, topic)
        settings = {
            **PRODUCER,
            **revealed(self.config),
            "bootstrap.servers": self.servers,
            "enable.idempotence": True,
        }
        self._patience_s = _patience_s(settings.get("message.timeout.ms", _TIMEOUT_MS))
        self._producer = new_client("Producer", settings, self._heard)
        if topic is not None:
            check_topic(self._producer, self._heard, topic)

    def write(self, item: Any) -> None:
        """Hand a record over; waits while the producer's queue is full."""
        assert self._make is not None, "a sink is opened before it is written to"
        made = self._make(item)
        newest = self._newest
        if newest is None or self.written - newest.first >= _TOGETHER:
            newest = self._begin()
        self._produce(made)
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
        settled, since_s = -1, time.monotonic()
        while (now := self.settle()) < self.written:
            if now > settled:
                settled, since_s = now, time.monotonic()
            elif time.monotonic() - since_s > self._patience_s:
                raise DeliveryError(
                    f"Kafka at {self.servers} has neither taken nor refused {self.written - now} records in"
                    f" {self._patience_s:.0f} s, which is longer than message.timeout.ms"
                )
            self._producer.flush(_LOOK_EVERY_S)

    def close(self) -> None:
        self.flush()
        self._producer = None

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

    def _produce(self, made: Made) -> None:
        topic, value, key, headers = made
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


@overload
def to_kafka(
    topic: str | Callable[[Any], str],
    *,
    servers: str,
    key: Callable[[Any], Any] | None = None,
    value: Encoding = "bytes",
    encode_key: Encoding | None = None,
    config: Config | None = None,
    exactly_once: Literal[False] = False,
) -> ToKafka: ...


@overload
def to_kafka(
    topic: str | Callable[[Any], str],
    *,
    servers: str,
    key: Callable[[Any], Any] | None = None,
    value: Encoding = "bytes",
    encode_key: Encoding | None = None,
    config: Config | None = None,
    exactly_once: Literal[True],
) -> ToKafkaOnce: ...


def to_kafka(
    topic: str | Callable[[Any], str],
    *,
    servers: str,
    key: Callable[[Any], Any] | None = None,
    value: Encoding = "bytes",
    encode_key: Encoding | None = None,
    config: Config | None = None,
    exactly_once: bool = False,
) -> ToKafka | ToKafkaOnce:
    """A topic, or a function of an item that names its topic.

    `key` is a function of an item: bytes are taken as they are, None is no key, anything else as its text,
    unless `encode_key` says how. `value` is "bytes", "text", "json", a function that makes bytes, or a
    `TopicEncoder`, which is told of topic and headers; so is `encode_key`. The headers of an item are sent
    with it, and in a flow with ids the header "penstock-id" holds its id. `config` are settings of
    librdkafka; secrets among them are `penstock.secret(...)`.

    With `exactly_once` readers that read what is committed (isolation.level=read_committed) see every item
    once, when it is committed; the flow must have a checkpoint where commits are marks.
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
    writing = Writing(topic, key, value, encode_key)
    kind = ToKafkaOnce if exactly_once else ToKafka
    return kind(writing, servers, checked_config(config, _OURS, where))
