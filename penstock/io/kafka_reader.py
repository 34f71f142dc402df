"""What reads a Kafka source: one client for all partitions of a replica, and a reader for each of them."""

from collections import deque
from collections.abc import Callable, Collection, Iterable, Mapping
from typing import TYPE_CHECKING, Any, Final

import msgspec

from penstock.flow.record import Record
from penstock.io.kafka_client import (
    RECONNECT_MS,
    Heard,
    KafkaError,
    ask,
    in_words,
    is_refusal,
    new_client,
    revealed,
)
from penstock.io.kafka_codecs import field_decoder
from penstock.io.kafka_lag import PartitionEnd
from penstock.io.protocol import Refused

if TYPE_CHECKING:
    from penstock.io.kafka_source import Kafka

# Prompt rather than much: a replica need not hold 64 MB of records.
_DEFAULTS: Final = {
    "queued.max.messages.kbytes": 16384,
    "fetch.error.backoff.ms": 100,
    "reconnect.backoff.max.ms": RECONNECT_MS,
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


class KafkaReaders:
    """The client, and its readers by split. What it fetches waits in the reader of its partition."""

    def __init__(self, source: "Kafka", offsets: Mapping[str, int]) -> None:
        from confluent_kafka import TopicPartition

        self.source = source
        topics = {topic_partition(split)[0] for split in offsets}
        self.heard = Heard(source.servers, next(iter(topics)) if len(topics) == 1 else None)
        settings = {
            **_DEFAULTS,
            **revealed(source.config),
            "bootstrap.servers": source.servers,
            "group.id": source.group or "penstock",
            "enable.auto.commit": False,
            "auto.offset.reset": "error",
        }
        self.consumer = new_client("Consumer", settings, self.heard)
        self.value_of = field_decoder("value", source.value)
        self.key_of = field_decoder("key", source.key)
        self.readers = {split: KafkaReader(self, split, offset) for split, offset in offsets.items()}
        self._by_place = {
            (reader.topic, reader.partition): (split, reader) for split, reader in self.readers.items()
        }
        self._only = next(iter(self.readers.items())) if len(self.readers) == 1 else None
        places = [TopicPartition(one.topic, one.partition, one.offset) for one in self.readers.values()]
        self.consumer.assign(places)

    def await_any(self, limit: int, wait_s: float) -> Collection[str]:
        """The splits for which records have arrived; a broker that is away is waited for."""
        found: dict[str, None] = {}
        messages = self._messages(limit, wait_s)
        if self._only is not None and messages and all(message.error() is None for message in messages):
            only, its_reader = self._only
            its_reader.take_all(messages)
            return [only]
        for message in messages:
            split, reader = self._by_place.get((message.topic(), message.partition()), (None, None))
            error = message.error()
            if error is not None:
                self._handle(error, message.topic(), reader)
            elif split is not None and reader is not None:
                reader.take(message)
                found[split] = None
        return found

    def close(self) -> None:
        """Leave the broker."""
        self.consumer.close()

    def _messages(self, limit: int, wait_s: float) -> list[Any]:
        """`consume` waits for as many as were asked for, so only the first is waited for, by `poll`."""
        first = self.consumer.poll(wait_s)
        self.heard.check()
        return [] if first is None else [first, *self.consumer.consume(limit - 1, 0)]

    def _handle(self, error: Any, topic: str | None, reader: "KafkaReader | None") -> None:
        """An error of a partition: those that pass by themselves are not raised."""
        from confluent_kafka import KafkaError as Code

        if reader is not None and error.code() in (Code._AUTO_OFFSET_RESET, Code.OFFSET_OUT_OF_RANGE):
            raise KafkaError(reader.out_of_range())
        if is_refusal(error):
            raise KafkaError(in_words(error, self.source.servers, topic))
        self.heard.hear(error)


class KafkaReader:
    """Reads one partition; `ordinals` are the offsets of what was read last, `refused` what has no item."""

    def __init__(self, client: KafkaReaders, split: str, offset: int) -> None:
        from confluent_kafka import TopicPartition

        self.offset = offset
        self.ordinals: list[int] = []
        self.refused: list[Refused] = []
        self.topic, self.partition = topic_partition(split)
        self._client = client
        self._arrived: deque[Any] = deque()
        self._decoded, self._decoded_key = client.value_of(self.topic), client.key_of(self.topic)
        self._item_of: Callable[[Any], Any] = self._decoded
        if client.source.records:
            self._item_of = self._item
        elif client.source.metadata:
            self._item_of = self._described
        self._place = TopicPartition(self.topic, self.partition)
        self._end = PartitionEnd(client.consumer, self._place)

    def take(self, message: Any) -> None:
        """A record of this partition has arrived."""
        self._arrived.append(message)

    def take_all(self, messages: Iterable[Any]) -> None:
        """Records of this partition have arrived."""
        self._arrived.extend(messages)

    def read(self, limit: int, wait_s: float) -> tuple[list[Any], None]:
        """What has arrived."""
        if not self._arrived:
            self._client.await_any(limit, wait_s)
        arrived, item_of = self._arrived, self._item_of
        messages = [arrived.popleft() for _ in range(min(limit, len(arrived)))]
        items: list[Any] = []
        ordinals = self.ordinals = [message.offset() for message in messages]
        refused = self.refused = []
        coming, add = iter(messages), items.append
        while len(items) + len(refused) < len(messages):
            try:
                for message in coming:
                    add(item_of(message))
            except Exception as problem:  # noqa: BLE001 - a user's decoder may raise anything
                at = len(items) + len(refused)
                refused.append(Refused(self._raw(messages[at]), problem, ordinals[at]))
        self.offset = ordinals[-1] + 1 if ordinals else self.offset
        if refused:
            no_items = {one.ordinal for one in refused}
            self.ordinals = [ordinal for ordinal in ordinals if ordinal not in no_items]
        return items, None

    @property
    def lag_items(self) -> int | None:
        """How many records of the partition are not read; None before the broker has said anything of it."""
        return self._end.lag_items(self.offset)

    def committed(self, offset: int) -> None:
        """The flow has committed all before this offset: told to the group, if one was named."""
        if self._client.source.group is not None:
            from confluent_kafka import TopicPartition

            place = TopicPartition(self.topic, self.partition, offset)
            self._client.consumer.commit(offsets=[place], asynchronous=True)

    def close(self) -> None:
        """With the client, of which it is the only reader."""
        self._client.close()

    def _described(self, message: Any) -> Record[Any]:
        """The item with what travels beside it."""
        return _with_metadata(message, self._decoded(message))

    def _item(self, message: Any) -> Any:
        """With all that Kafka knows of it."""
        record = self._record(message, self._decoded(message), self._decoded_key(message))
        return _with_metadata(message, record) if self._client.source.metadata else record

    def _raw(self, message: Any) -> KafkaRecord:
        return self._record(message, message.value(), message.key())

    def _record(self, message: Any, value: Any, key: Any) -> KafkaRecord:
        kind, timestamp_ms = message.timestamp()
        return KafkaRecord(
            topic=self.topic,
            partition=self.partition,
            offset=message.offset(),
            value=value,
            key=key,
            timestamp_ms=timestamp_ms if kind else None,
            headers=tuple(message.headers() or ()),
        )

    def out_of_range(self) -> str:
        """In words, that the broker does not have the offset of this reader."""
        client = self._client
        low, high = ask(
            client.consumer,
            client.heard,
            lambda timeout_s: client.consumer.get_watermark_offsets(self._place, timeout=timeout_s),
        )
        return (
            f"{self.topic}-{self.partition} at {client.source.servers} holds the offsets {low} up to {high},"
            f" and not {self.offset}: its retention was shorter than the flow was away, or the topic was made"
            " anew; begin with a new checkpoint, and start= where it should"
        )


def _with_metadata(message: Any, item: Any) -> Record[Any]:
    """Of headers of one name the last, and none without a value."""
    kind, timestamp_ms = message.timestamp()
    sent = message.headers()
    headers = {name: value for name, value in sent if value is not None} if sent else {}
    return Record(item, headers, timestamp_ms if kind else None, message.key())


def topic_partition(split: str) -> tuple[str, int]:
    """Of the name of a split.

    >>> topic_partition("web-orders-11")
    ('web-orders', 11)
    """
    topic, _, partition = split.rpartition("-")
    return topic, int(partition)
