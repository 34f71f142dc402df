"""The Kafka sink on a real broker, without Spark."""

import time
from collections import defaultdict
from typing import Any

import pytest

import penstock
from penstock.io.kafka_client import KafkaError
from penstock.io.kafka_records import ID_HEADER
from penstock.io.kafka_sink import ToKafka
from penstock.io.protocol import DeliveryError, LateSink
from penstock.testing import KafkaBroker
from tests.io.sink_context import FakeContext
from tests.kafka_cluster import consumed, new_topic

PATIENCE_S = 30.0


def opened(sink: ToKafka, item_id: tuple[int, ...] | None = None) -> ToKafka:
    sink.open(FakeContext(item_id=item_id))
    return sink


def test_after_flush_the_broker_has_all_in_order(broker: KafkaBroker) -> None:
    topic = new_topic(broker)
    sink = opened(penstock.to_kafka(topic, servers=broker.servers, value="json"))
    assert isinstance(sink, LateSink)
    for number in range(500):
        sink.write({"number": number})
    sink.flush()
    assert sink.settle() == sink.written == 500
    values = [message.value() for message in consumed(broker, topic)]
    assert values == [b'{"number":%d}' % number for number in range(500)]
    sink.close()


def test_what_is_settled_does_not_wait_for_what_follows_and_is_never_too_much(broker: KafkaBroker) -> None:
    """Records leave a hundred at a time, or with a flush."""
    topic = new_topic(broker)
    config: dict[str, Any] = {"linger.ms": 60_000, "batch.num.messages": 100}
    sink = opened(penstock.to_kafka(topic, servers=broker.servers, config=config))
    for _ in range(100):
        sink.write(b"x")
    deadline = time.monotonic() + PATIENCE_S
    while (safe := sink.settle()) < 100 and time.monotonic() < deadline:
        time.sleep(0.01)
    assert safe == 100
    for _ in range(70):
        sink.write(b"y")
        assert sink.settle() == 100, "they wait for others"
    sink.flush()
    assert sink.settle() == sink.written == 170
    assert len(consumed(broker, topic)) == 170
    sink.close()


def test_items_of_a_key_keep_their_order_in_one_partition(broker: KafkaBroker) -> None:
    topic = new_topic(broker, 3)
    sink = opened(
        penstock.to_kafka(
            topic, servers=broker.servers, key=lambda item: item % 7, value=lambda item: b"%d" % item
        )
    )
    for number in range(350):
        sink.write(number)
    sink.close()
    by_key = defaultdict(list)
    for message in consumed(broker, topic, 3):
        by_key[message.key(), message.partition()].append(int(message.value()))
    assert sorted(by_key.values()) == [list(range(key, 350, 7)) for key in range(7)]


def test_ids_are_in_a_header_and_the_topic_may_depend_on_the_item(broker: KafkaBroker) -> None:
    left, right = new_topic(broker), new_topic(broker)
    sink = penstock.to_kafka(
        lambda item: {"l": left, "r": right}[item[0]], servers=broker.servers, value="text"
    )
    opened(sink, item_id=(12, 3, 4))
    for item in ("l1", "r1", "l2"):
        sink.write(item)
    sink.close()
    assert [message.value() for message in consumed(broker, left)] == [b"l1", b"l2"]
    (message,) = consumed(broker, right)
    assert message.headers() == [(ID_HEADER, b"12.3.4")]
    assert message.key() is None


def test_a_record_too_large_for_the_client_is_an_error_of_its_item(broker: KafkaBroker) -> None:
    topic = new_topic(broker)
    sink = opened(penstock.to_kafka(topic, servers=broker.servers, config={"message.max.bytes": 2000}))
    sink.write(b"small")
    with pytest.raises(KafkaError, match=f'a record is too large for topic "{topic}"'):
        sink.write(b"x" * 3000)
    sink.write(b"small too")
    sink.close()
    assert sink.written == 2
    assert [message.value() for message in consumed(broker, topic)] == [b"small", b"small too"]


def test_a_record_too_large_for_the_topic_is_told_and_never_settled(broker: KafkaBroker) -> None:
    topic = new_topic(broker, config={"max.message.bytes": 2000})
    sink = opened(penstock.to_kafka(topic, servers=broker.servers))
    sink.write(b"x" * 3000)
    with pytest.raises(DeliveryError, match=r'too large for topic .*"message\.max\.bytes": N'):
        sink.flush()
    with pytest.raises(DeliveryError):
        sink.settle()
    with pytest.raises(DeliveryError):
        sink.write(b"after it")


def test_a_topic_that_is_missing_is_refused(broker: KafkaBroker) -> None:
    with pytest.raises(KafkaError, match='has no topic "ordres": create it, or correct its name'):
        opened(penstock.to_kafka("ordres", servers=broker.servers))


def test_what_is_no_bytes_is_told_how_to_be_written(broker: KafkaBroker) -> None:
    sink = opened(penstock.to_kafka(new_topic(broker), servers=broker.servers))
    with pytest.raises(TypeError, match=r'dict is no bytes; .* value="json"'):
        sink.write({})
    assert sink.written == 0
    sink.close()


def test_a_topic_that_is_deleted_while_it_is_written_is_told(broker: KafkaBroker) -> None:
    topic = new_topic(broker)
    config: dict[str, Any] = {
        "topic.metadata.refresh.interval.ms": 100,
        "topic.metadata.propagation.max.ms": 0,
    }
    sink = opened(penstock.to_kafka(topic, servers=broker.servers, config=config))
    sink.write(b"before")
    sink.flush()
    broker.delete_topic(topic)

    def write() -> None:
        """The producer may have heard of it before the record is handed over, or hear of it afterwards."""
        sink.write(b"after it")
        sink.flush()

    with pytest.raises(
        (KafkaError, DeliveryError), match=rf'no topic "{topic}": create it, or correct its name'
    ):
        write()


def test_a_password_that_is_refused_is_told(broker: KafkaBroker, monkeypatch: pytest.MonkeyPatch) -> None:
    topic = new_topic(broker)
    monkeypatch.setenv("OLD_PASSWORD", "open sesame")
    config: dict[str, Any] = {
        "security.protocol": "SASL_PLAINTEXT",
        "sasl.mechanism": "PLAIN",
        "sasl.username": "penstock",
        "sasl.password": penstock.secret(env="OLD_PASSWORD"),
    }
    with pytest.raises(KafkaError, match="refuses the user or the password") as refused:
        opened(penstock.to_kafka(topic, servers=broker.secured_servers, config=config))
    assert "open sesame" not in str(refused.value)


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ({"topic": ""}, "give the name of a topic"),
        ({"key": "number"}, "key must be a function of an item, not 'number'"),
        ({"value": "avro"}, "value must be bytes, text, json, a function that makes bytes"),
        ({"config": {"acks": 1}}, "config may not hold acks: a record is acknowledged when"),
        ({"config": {"sasl.password": "x"}}, "sasl.password is a secret"),
    ],
)
def test_what_cannot_be_meant_is_refused(arguments: dict[str, Any], words: str) -> None:
    given: dict[str, Any] = {"topic": "orders", "servers": "127.0.0.1:9", **arguments}
    with pytest.raises(KafkaError, match=words):
        penstock.to_kafka(given.pop("topic"), **given)
