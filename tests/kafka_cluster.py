"""One broker for all tests that need one, and topics of their own for each of them."""

import itertools
import time
from collections.abc import Iterable, Mapping
from typing import Any, Final

from penstock.testing.kafka_broker import KafkaBroker

PASSWORD = "drawbridge-41-x"
_numbers = itertools.count(1)
_COMMITTED: Final = "read_committed"
_ALL: Final = "read_uncommitted"
_MARKS_WITHIN_S: Final = 1.0


def new_topic(broker: KafkaBroker, partitions: int = 1, config: Mapping[str, str | int] | None = None) -> str:
    """A topic that no other test uses."""
    name = f"topic-{next(_numbers)}"
    broker.create_topic(name, partitions, config)
    return name


def produce(
    broker: KafkaBroker, topic: str, values: Iterable[bytes | None], partition: int = 0, **more: Any
) -> None:
    """Records in a partition, in their order."""
    from confluent_kafka import Producer

    producer = Producer({"bootstrap.servers": broker.servers, "linger.ms": 2})
    for value in values:
        producer.produce(topic, value, partition=partition, **more)
    assert producer.flush(30) == 0


def count(broker: KafkaBroker, topic: str) -> int:
    """How many records were ever written to a topic of one partition; costs less than reading them."""
    from confluent_kafka import TopicPartition

    consumer = _consumer(broker)
    _, high = consumer.get_watermark_offsets(TopicPartition(topic, 0), timeout=10)
    consumer.close()
    return int(high)


def consumed(broker: KafkaBroker, topic: str, partitions: int = 1) -> list[Any]:
    """All records of a topic, one partition after the other."""
    from confluent_kafka import TopicPartition

    consumer = _consumer(broker)
    found: list[Any] = []
    for number in range(partitions):
        place = TopicPartition(topic, number)
        low, high = consumer.get_watermark_offsets(place, timeout=10)
        consumer.assign([TopicPartition(topic, number, low)])
        while low < high:
            message: Any = consumer.poll(10)
            assert message is not None, "a record did not come"
            assert message.error() is None, message.error()
            found.append(message)
            low = message.offset() + 1
    consumer.close()
    return found


def seen(broker: KafkaBroker, topic: str, partitions: int = 1, *, committed: bool = True) -> list[Any]:
    """What readers find now, one partition after the other: what is `committed`, or all that was sent."""
    from confluent_kafka import TopicPartition

    if committed:
        _await_marks(broker, topic, partitions)
    level = _COMMITTED if committed else _ALL
    more: dict[str, str | int | bool]
    more = {"isolation.level": level, "enable.partition.eof": True, "fetch.wait.max.ms": 10}
    consumer = _consumer(broker, more)
    found: list[Any] = []
    for number in range(partitions):
        consumer.assign([TopicPartition(topic, number, 0)])
        while (message := consumer.poll(10)) is not None and message.error() is None:
            found.append(message)
        assert message is not None, "the end did not come"
        assert message.error().code() == message.error()._PARTITION_EOF, message.error()
    consumer.close()
    return found


def _await_marks(broker: KafkaBroker, topic: str, partitions: int) -> None:
    """A broker answers a commit before each partition has its mark, up to which readers see nothing of it.

    A transaction that nobody ends is not waited for.
    """
    from confluent_kafka import TopicPartition

    both = [_consumer(broker, {"isolation.level": level}) for level in (_COMMITTED, _ALL)]
    deadline_s = time.monotonic() + _MARKS_WITHIN_S
    for number in range(partitions):
        place = TopicPartition(topic, number)
        while time.monotonic() < deadline_s:
            seen_to, end = (consumer.get_watermark_offsets(place, 10)[1] for consumer in both)
            if seen_to == end:
                break
            time.sleep(0.02)
    for consumer in both:
        consumer.close()


def _consumer(broker: KafkaBroker, more: Mapping[str, str | int | bool] | None = None) -> Any:
    """What one commits by itself, `close` waits for: a minute if the broker that keeps it was stopped."""
    from confluent_kafka import Consumer

    settings = {"bootstrap.servers": broker.servers, "group.id": "tests", "enable.auto.commit": False}
    return Consumer({**settings, **(more or {})})
