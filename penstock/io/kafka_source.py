"""A source of Kafka topics. A split is a partition of a topic, an offset is Kafka's own.

Partitions are assigned, so there is no group that rebalances, and where reading goes on is in Penstock's
commits alone. The id of an item is that of its split, and its offset.
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, ClassVar, Final, Literal

import msgspec

from penstock.flow.record import Record
from penstock.io.kafka_client import (
    Config,
    Heard,
    KafkaError,
    ask,
    asking,
    checked_config,
    in_words,
    is_refusal,
    new_client,
    revealed,
)
from penstock.io.kafka_codecs import Decoding, checked_decoding, decoder
from penstock.io.kafka_lag import PartitionEnd
from penstock.io.protocol import Refused, SourceClock

Start = Literal["earliest", "latest"] | datetime | Mapping[str, int]

_OURS: Final = {
    "bootstrap.servers": "give servers=",
    "group.id": "give group=",
    "auto.offset.reset": "give start=",
    "enable.auto.commit": "positions are in the commits of the flow",
    "enable.auto.offset.store": "positions are in the commits of the flow",
}
# Prompt rather than much: a partition is read by a process of its own, which need not hold 64 MB of records.
_DEFAULTS: Final = {
    "queued.max.messages.kbytes": 16384,
    "fetch.error.backoff.ms": 100,
    "client.id": "penstock",
}


class KafkaRecord(msgspec.Struct, frozen=True):
    """A record with all that Kafka knows of it: the items of `kafka(..., records=True)`.

    `timestamp_ms` is since 1970, None if the record has none; `headers` are as they were sent, in order.
    """

    topic: str
    partition: int
    offset: int
    value: Any
    key: Any = None
    timestamp_ms: int | None = None
    headers: tuple[tuple[str, bytes | None], ...] = ()


@dataclass(frozen=True)
class Kafka:
    """Topics, as they were when the flow was declared."""

    splits: tuple[str, ...]
    servers: str
    begin: Start
    value: Decoding
    key: Decoding
    config: Config = field(repr=False)
    group: str | None
    records: bool
    metadata: bool
    name: str
    endless: ClassVar[bool] = True

    def start(self, split: str) -> int:
        """Where reading begins, asked of the broker."""
        if isinstance(self.begin, Mapping):
            return self.begin[split]
        from confluent_kafka import TopicPartition

        place = TopicPartition(*topic_partition(split))
        with asking(self.servers, self.config) as (client, heard):

            def kept(timeout_s: float) -> tuple[int, int]:
                low, high = client.get_watermark_offsets(place, timeout=timeout_s)
                return low, high

            low, high = ask(client, heard, kept, place.topic)
            if isinstance(self.begin, datetime):
                place.offset = round(self.begin.timestamp() * 1000)
                (found,) = ask(client, heard, lambda s: client.offsets_for_times([place], timeout=s))
                return int(found.offset) if found.offset >= 0 else int(high)
            return int(low if self.begin == "earliest" else high)

    def open(self, split: str, offset: int, clock: SourceClock) -> "KafkaReader":  # noqa: ARG002 - not paced
        return KafkaReader(self, split, offset)


class KafkaReader:
    """Reads one partition; `ordinals` are the offsets of what was read last, `refused` what has no item."""

    def __init__(self, source: Kafka, split: str, offset: int) -> None:
        from confluent_kafka import TopicPartition

        self.offset = offset
        self.ordinals: list[int] = []
        self.refused: list[Refused] = []
        self.lag_items: int | None = None
        self._source = source
        self._topic, self._partition = topic_partition(split)
        self._value, self._key = decoder(source.value), decoder(source.key)
        self._heard = Heard(source.servers, self._topic)
        settings = {
            **_DEFAULTS,
            **revealed(source.config),
            "bootstrap.servers": source.servers,
            "group.id": source.group or "penstock",
            "enable.auto.commit": False,
            "auto.offset.reset": "error",
        }
        self._place = TopicPartition(self._topic, self._partition)
        self._consumer = new_client("Consumer", settings, self._heard)
        self._end = PartitionEnd(self._consumer, self._place)
        self._consumer.assign([TopicPartition(self._topic, self._partition, offset)])

    def read(self, limit: int, wait_s: float) -> tuple[list[Any], None]:
        """What has arrived; a broker that is away is waited for."""
        items: list[Any] = []
        self.ordinals, self.refused = [], []
        for message in self._messages(limit, wait_s):
            error = message.error()
            if error is not None:
                self._handle(error)
                continue
            offset = message.offset()
            try:
                items.append(self._item(message))
                self.ordinals.append(offset)
            except Exception as problem:  # noqa: BLE001 - a user's decoder may raise anything
                self.refused.append(Refused(self._raw(message), problem, offset))
            self.offset = offset + 1
        self.lag_items = self._end.lag_items(self.offset)
        return items, None

    def _messages(self, limit: int, wait_s: float) -> list[Any]:
        """`consume` waits for as many as were asked for, so only the first is waited for, by `poll`."""
        first = self._consumer.poll(wait_s)
        self._heard.check()
        return [] if first is None else [first, *self._consumer.consume(limit - 1, 0)]

    def committed(self, offset: int) -> None:
        """The flow has committed all before this offset: told to the group, if one was named."""
        if self._source.group is not None:
            from confluent_kafka import TopicPartition

            place = TopicPartition(self._topic, self._partition, offset)
            self._consumer.commit(offsets=[place], asynchronous=True)

    def close(self) -> None:
        self._consumer.close()

    def _item(self, message: Any) -> Any:
        value = message.value()
        decoded = None if value is None else self._value(value)
        if self._source.records:
            key = message.key()
            decoded = self._record(message, decoded, None if key is None else self._key(key))
        return self._described(message, decoded) if self._source.metadata else decoded

    def _described(self, message: Any, item: Any) -> Record[Any]:
        """The item with what travels beside it: of headers of one name the last, and none without a value."""
        kind, timestamp_ms = message.timestamp()
        headers = {name: value for name, value in message.headers() or () if value is not None}
        return Record(item, headers, timestamp_ms if kind else None, message.key())

    def _raw(self, message: Any) -> KafkaRecord:
        return self._record(message, message.value(), message.key())

    def _record(self, message: Any, value: Any, key: Any) -> KafkaRecord:
        kind, timestamp_ms = message.timestamp()
        return KafkaRecord(
            topic=self._topic,
            partition=self._partition,
            offset=message.offset(),
            value=value,
            key=key,
            timestamp_ms=timestamp_ms if kind else None,
            headers=tuple(message.headers() or ()),
        )

    def _handle(self, error: Any) -> None:
        """An error of the partition: those that pass by themselves are not raised."""
        from confluent_kafka import KafkaError as Code

        if error.code() in (Code._AUTO_OFFSET_RESET, Code.OFFSET_OUT_OF_RANGE):
            raise KafkaError(self._out_of_range())
        if is_refusal(error):
            raise KafkaError(in_words(error, self._source.servers, self._topic))
        self._heard.hear(error)

    def _out_of_range(self) -> str:
        low, high = ask(
            self._consumer,
            self._heard,
            lambda timeout_s: self._consumer.get_watermark_offsets(self._place, timeout=timeout_s),
        )
        return (
            f"{self._topic}-{self._partition} at {self._source.servers} holds the offsets {low} up to {high},"
            f" and not {self.offset}: its retention was shorter than the flow was away, or the topic was made"
            " anew; begin with a new checkpoint, and start= where it should"
        )


def topic_partition(split: str) -> tuple[str, int]:
    """Of the name of a split.

    >>> topic_partition("web-orders-11")
    ('web-orders', 11)
    """
    topic, _, partition = split.rpartition("-")
    return topic, int(partition)


def kafka(
    topics: str | Sequence[str] | re.Pattern[str],
    *,
    servers: str,
    start: Start = "earliest",
    value: Decoding = "bytes",
    key: Decoding = "bytes",
    records: bool = False,
    metadata: bool = False,
    config: Config | None = None,
    group: str | None = None,
    partitions: int | None = None,
) -> Kafka:
    """The records of one topic, of several, or of all whose whole name matches a pattern.

    The broker is asked for their partitions now, unless `partitions` says how many each of them has. Each is
    read by a replica of its own. `start` holds for partitions that no commit knows: "earliest", "latest", a
    datetime with a time zone, or offsets by partition, as in {"orders-0": 17}.

    An item is the value, decoded: `value` is "bytes", "text", "json", a msgspec struct or dataclass that JSON
    is read into, or any function of bytes. With `records` it is a `KafkaRecord`, whose key is decoded by
    `key`. With `metadata` tasks find headers, timestamp and key of a record in their context, and what they
    make of an item inherits them. `config` are settings of librdkafka; secrets among them are
    `penstock.secret(...)`. With a `group` the positions of commits are also committed there, for those who
    watch its lag.
    """
    where = f"kafka({_shown(topics)})"
    checked = checked_config(config, _OURS, where)
    checked_decoding(value, f"{where}: value")
    checked_decoding(key, f"{where}: key")
    _check_topics(topics, partitions, where)
    if isinstance(start, datetime) and start.tzinfo is None:
        raise KafkaError(f"{where}: start {start} has no time zone; give it one, as in tzinfo=UTC")
    if not isinstance(start, datetime | Mapping) and start not in ("earliest", "latest"):
        raise KafkaError(
            f'{where}: start must be "earliest", "latest", a datetime or offsets by partition, not {start!r}'
        )
    if partitions is not None and not isinstance(topics, re.Pattern):
        counts = dict.fromkeys([topics] if isinstance(topics, str) else topics, partitions)
    else:
        counts = _partitions(topics, servers, checked, where)
    splits = tuple(f"{topic}-{number}" for topic in sorted(counts) for number in range(counts[topic]))
    if isinstance(start, Mapping) and set(start) != set(splits):
        raise KafkaError(f"{where}: start names {sorted(start)}, and its partitions are {list(splits)}")
    name = re.sub(r"[^A-Za-z0-9_-]", "_", next(iter(counts))) if len(counts) == 1 else "kafka"
    return Kafka(splits, servers, start, value, key, checked, group, records, metadata, name)


def _shown(topics: Any) -> str:
    return repr(topics.pattern if isinstance(topics, re.Pattern) else topics)


def _check_topics(topics: Any, partitions: int | None, where: str) -> None:
    if isinstance(topics, re.Pattern):
        if partitions is not None:
            raise KafkaError(
                f"{where}: which topics match a pattern only the broker knows; leave partitions out"
            )
        return
    named = [topics] if isinstance(topics, str) else topics
    if not isinstance(named, Sequence) or not named or not all(isinstance(t, str) and t for t in named):
        raise KafkaError(f"{where}: give the name of a topic, several names, or a compiled pattern")
    if partitions is not None and partitions < 1:
        raise KafkaError(f"{where}: partitions must be 1 or more, not {partitions}")


def _partitions(topics: Any, servers: str, config: Config, where: str) -> dict[str, int]:
    """How many partitions each topic has."""
    with asking(servers, config) as (client, heard):
        known = ask(client, heard, lambda timeout_s: client.list_topics(timeout=timeout_s)).topics
    if isinstance(topics, re.Pattern):
        found = [name for name in known if topics.fullmatch(name) and not name.startswith("__")]
        missing = [] if found else [f"no topic that matches {topics.pattern}"]
    else:
        found = [topics] if isinstance(topics, str) else list(topics)
        missing = [f'no topic "{name}"' for name in found if name not in known]
    if missing:
        others = ", ".join(sorted(name for name in known if not name.startswith("__"))) or "none"
        raise KafkaError(f"{where}: Kafka at {servers} has {missing[0]}; its topics are {others}")
    return {name: len(known[name].partitions) for name in found}
