"""A source of Kafka topics. A split is a partition of a topic, an offset is Kafka's own.

Partitions are assigned, so there is no group that rebalances, and where reading goes on is in Penstock's
commits alone. The id of an item is that of its split, and its offset.
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, ClassVar, Final, Literal

from penstock.durations import Duration, DurationError, seconds
from penstock.io.kafka_client import Config, KafkaError, ask, asking, checked_config
from penstock.io.kafka_codecs import Decoding, checked_decoding
from penstock.io.kafka_reader import KafkaReader, KafkaReaders, topic_partition
from penstock.io.protocol import SourceClock

Start = Literal["earliest", "latest"] | datetime | Mapping[str, int]

_OURS: Final = {
    "bootstrap.servers": "give servers=",
    "group.id": "give group=",
    "auto.offset.reset": "give start=",
    "enable.auto.commit": "positions are in the commits of the flow",
    "enable.auto.offset.store": "positions are in the commits of the flow",
}

_OFTEN_ENOUGH_S: Final = 0.5


@dataclass(frozen=True)
class Kafka:
    """Topics; `splits` are their partitions when the flow was declared."""

    topics: str | Sequence[str] | re.Pattern[str]
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
    discover_every_s: float | None
    endless: ClassVar[bool] = True

    def start(self, split: str) -> int:
        """Where reading begins, asked of the broker."""
        return self.begin[split] if isinstance(self.begin, Mapping) else self._asked(split, self.begin)

    def discover(self) -> tuple[str, ...]:
        """The partitions that the broker knows now."""
        return _splits(_partitions(self.topics, self.servers, self.config, f"kafka({_shown(self.topics)})"))

    def start_of_new(self, split: str) -> int:
        """With its first record, or at the time that was given: all of it came after the flow had begun."""
        return self._asked(split, self.begin if isinstance(self.begin, datetime) else "earliest")

    def _asked(self, split: str, begin: Literal["earliest", "latest"] | datetime) -> int:
        from confluent_kafka import TopicPartition

        place = TopicPartition(*topic_partition(split))
        with asking(self.servers, self.config) as (client, heard):

            def kept(timeout_s: float) -> tuple[int, int]:
                low, high = client.get_watermark_offsets(place, timeout=timeout_s)
                return low, high

            low, high = ask(client, heard, kept, place.topic)
            if isinstance(begin, datetime):
                place.offset = round(begin.timestamp() * 1000)
                (found,) = ask(client, heard, lambda s: client.offsets_for_times([place], timeout=s))
                return int(found.offset) if found.offset >= 0 else int(high)
            return int(low if begin == "earliest" else high)

    def open(self, split: str, offset: int, clock: SourceClock) -> KafkaReader:  # noqa: ARG002 - not paced
        return KafkaReaders(self, {split: offset}).readers[split]

    def open_jointly(self, offsets: Mapping[str, int]) -> KafkaReaders:
        """One client for all of them."""
        return KafkaReaders(self, offsets)


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
    discover: Duration | None = "30 s",
) -> Kafka:
    """The records of one topic, of several, or of all whose whole name matches a pattern.

    The broker is asked for their partitions now, unless `partitions` says how many each of them has. `start`
    holds for partitions that no commit knows: "earliest", "latest", a datetime with a time zone, or offsets
    by partition, as in {"orders-0": 17}. Every `discover` the driver of a running flow looks for partitions
    and topics that were added, unless `partitions` were given.

    An item is the value, decoded: `value` is "bytes", "text", "json", a msgspec struct or dataclass that JSON
    is read into, any function of bytes, or a `TopicDecoder`, which is told of topic and headers. With
    `records` it is a `KafkaRecord`, whose key is decoded by `key`. With `metadata` tasks find headers,
    timestamp and key of a record in their context, and what they make of an item inherits them. `config` are
    settings of librdkafka; secrets among them are `penstock.secret(...)`. With a `group` the positions of
    commits are also committed there, for those who watch its lag.
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
    splits = _splits(counts)
    if isinstance(start, Mapping) and set(start) != set(splits):
        raise KafkaError(f"{where}: start names {sorted(start)}, and its partitions are {list(splits)}")
    name = re.sub(r"[^A-Za-z0-9_-]", "_", next(iter(counts))) if len(counts) == 1 else "kafka"
    every_s = _discover_every_s(discover, where)
    if partitions is not None:
        every_s = None
    return Kafka(topics, splits, servers, start, value, key, checked, group, records, metadata, name, every_s)


def _discover_every_s(given: Duration | None, where: str) -> float | None:
    if given is None:
        return None
    try:
        every_s = seconds(given)
    except DurationError as problem:
        raise KafkaError(f"{where}: discover: {problem}") from None
    if every_s < _OFTEN_ENOUGH_S:
        raise KafkaError(f"{where}: discover {given!r} is more often than every {_OFTEN_ENOUGH_S:g} s")
    return every_s


def _splits(partitions: Mapping[str, int]) -> tuple[str, ...]:
    return tuple(f"{topic}-{number}" for topic in sorted(partitions) for number in range(partitions[topic]))


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
