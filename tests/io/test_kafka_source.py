"""The Kafka source on a real broker, without Spark."""

import re
import time
from datetime import UTC, datetime
from typing import Any

import msgspec
import pytest

import penstock
from penstock.io import kafka_client
from penstock.io.kafka_client import KafkaError
from penstock.io.kafka_reader import KafkaReader, KafkaRecord
from penstock.io.kafka_source import Kafka
from penstock.io.protocol import GrowingSource, JointSource, RecordReader, SourceClock
from penstock.testing import KafkaBroker, run
from tests.io.sink_context import FakeContext
from tests.kafka_cluster import PASSWORD, new_topic, produce

CLOCK = SourceClock(0, 0)
PATIENCE_S = 30.0


class Order(msgspec.Struct):
    number: int


def read_all(
    source: Kafka, split: str, count: int, offset: int | None = None
) -> tuple[list[Any], KafkaReader]:
    """So many items, or what was refused in place of them; the reader is closed."""
    reader = source.open(split, source.start(split) if offset is None else offset, CLOCK)
    items: list[Any] = []
    seen = 0
    deadline = time.monotonic() + PATIENCE_S
    while seen < count and time.monotonic() < deadline:
        items += reader.read(512, 0.05)[0]
        seen += len(reader.ordinals) + len(reader.refused)
    reader.close()
    return items, reader


def numbers(count: int) -> list[bytes]:
    return [str(number).encode() for number in range(count)]


def until_raised(reader: KafkaReader) -> KafkaError:
    deadline = time.monotonic() + PATIENCE_S
    try:
        while time.monotonic() < deadline:
            reader.read(512, 0.05)
    except KafkaError as problem:
        return problem
    finally:
        reader.close()
    raise AssertionError("nothing was raised")


@pytest.fixture
def impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(kafka_client, "ANSWER_WITHIN_S", 1.0)


def test_a_partition_is_a_split_and_is_read_in_order(broker: KafkaBroker) -> None:
    topic = new_topic(broker, 2)
    produce(broker, topic, numbers(1000))
    produce(broker, topic, [b"other"], partition=1)
    source = penstock.kafka(topic, servers=broker.servers)
    assert source.splits == (f"{topic}-0", f"{topic}-1")
    assert source.name == topic
    items, reader = read_all(source, f"{topic}-0", 1000)
    assert items == numbers(1000)
    assert reader.offset == 1000
    assert read_all(source, f"{topic}-1", 1)[0] == [b"other"]
    assert read_all(source, f"{topic}-0", 3, offset=997)[0] == [b"997", b"998", b"999"]


def test_ordinals_are_the_offsets_and_the_lag_is_what_is_left(broker: KafkaBroker) -> None:
    topic = new_topic(broker)
    produce(broker, topic, numbers(100))
    source = penstock.kafka(topic, servers=broker.servers)
    reader = source.open(f"{topic}-0", 10, CLOCK)
    assert isinstance(reader, RecordReader)
    deadline = time.monotonic() + PATIENCE_S
    while not reader.read(4, 0.05)[0] and time.monotonic() < deadline:
        pass
    taken = len(reader.ordinals)
    assert list(reader.ordinals) == list(range(10, 10 + taken))
    assert 1 <= taken <= 4
    assert reader.lag_items == 90 - taken
    reader.close()


def test_partitions_of_several_topics_are_read_by_one_client(broker: KafkaBroker) -> None:
    one, other = new_topic(broker, 2), new_topic(broker)
    produce(broker, one, numbers(600))
    produce(broker, one, [b"a", b"b"], partition=1)
    produce(broker, other, [b"x"])
    source = penstock.kafka([one, other], servers=broker.servers)
    assert isinstance(source, JointSource)
    client = source.open_jointly({f"{one}-0": 100, f"{one}-1": 0, f"{other}-0": 0})
    found: dict[str, list[bytes]] = {split: [] for split in client.readers}
    offsets: dict[str, list[int]] = {split: [] for split in client.readers}
    deadline = time.monotonic() + PATIENCE_S
    while sum(map(len, found.values())) < 503 and time.monotonic() < deadline:
        ready = client.await_any(64, 0.05)
        taken = {split: client.readers[split].read(64, 0.0)[0] for split in ready}
        assert sum(map(len, taken.values())) <= 64
        for split, items in taken.items():
            assert items, "whoever is named has something"
            found[split] += items
            offsets[split] += client.readers[split].ordinals
    client.close()
    assert found == {f"{one}-0": numbers(600)[100:], f"{one}-1": [b"a", b"b"], f"{other}-0": [b"x"]}
    assert offsets == {f"{one}-0": [*range(100, 600)], f"{one}-1": [0, 1], f"{other}-0": [0]}


def test_where_to_start(broker: KafkaBroker) -> None:
    topic = new_topic(broker)
    produce(broker, topic, numbers(3), timestamp=1_000_000)
    produce(broker, topic, numbers(2), timestamp=2_000_000)
    starts: list[tuple[Any, int]] = [
        ("earliest", 0),
        ("latest", 5),
        (datetime.fromtimestamp(1500, UTC), 3),
        (datetime.fromtimestamp(3000, UTC), 5),
        ({f"{topic}-0": 4}, 4),
    ]
    for start, offset in starts:
        assert penstock.kafka(topic, servers=broker.servers, start=start).start(f"{topic}-0") == offset


@pytest.mark.parametrize(
    ("decoding", "expected"),
    [
        ("bytes", b'{"number": 7}'),
        ("text", '{"number": 7}'),
        ("json", {"number": 7}),
        (Order, Order(7)),
        (len, 13),
    ],
)
def test_values_are_decoded(broker: KafkaBroker, decoding: Any, expected: Any) -> None:
    topic = new_topic(broker)
    produce(broker, topic, [b'{"number": 7}', None])
    source = penstock.kafka(topic, servers=broker.servers, value=decoding)
    assert read_all(source, f"{topic}-0", 2)[0] == [expected, None]


def test_what_cannot_be_decoded_is_refused_with_its_offset(broker: KafkaBroker) -> None:
    topic = new_topic(broker)
    produce(broker, topic, [b"1", b"no json", b"3"])
    source = penstock.kafka(topic, servers=broker.servers, value="json")
    reader = source.open(f"{topic}-0", 0, CLOCK)
    items, ordinals, refused = [], [], []
    deadline = time.monotonic() + PATIENCE_S
    while reader.offset < 3 and time.monotonic() < deadline:
        items += reader.read(512, 0.05)[0]
        ordinals += reader.ordinals
        refused += reader.refused
    reader.close()
    assert (items, ordinals) == ([1, 3], [0, 2])
    (one,) = refused
    assert one.ordinal == 1
    assert one.raw.offset == 1
    assert one.raw.value == b"no json"
    assert isinstance(one.problem, msgspec.DecodeError)


def test_a_decoder_may_raise_anything_of_any_record(broker: KafkaBroker) -> None:
    """Also what Python ends its own loops with: no record behind or before it gets lost."""
    topic = new_topic(broker)
    produce(broker, topic, [b"%d" % number for number in range(8)])
    seen = []

    def of_some(value: bytes) -> int:
        seen.append(value)
        number = int(value)
        return number if number not in (0, 3, 4, 7) else next(iter(()))

    reader = penstock.kafka(topic, servers=broker.servers, value=of_some).open(f"{topic}-0", 0, CLOCK)
    items, ordinals, refused = [], [], []
    deadline = time.monotonic() + PATIENCE_S
    while reader.offset < 8 and time.monotonic() < deadline:
        items += reader.read(5, 0.05)[0]
        ordinals += reader.ordinals
        refused += [(one.ordinal, one.raw.offset, type(one.problem)) for one in reader.refused]
    reader.close()
    assert items == ordinals == [1, 2, 5, 6]
    assert refused == [(number, number, StopIteration) for number in (0, 3, 4, 7)]
    assert len(seen) == 8, "each once"


def test_records_have_key_time_and_headers(broker: KafkaBroker) -> None:
    topic = new_topic(broker)
    produce(broker, topic, [b"v"], key=b"k", timestamp=1234, headers=[("a", b"1"), ("a", b"2")])
    source = penstock.kafka(topic, servers=broker.servers, value="text", key="text", records=True)
    (record,), _ = read_all(source, f"{topic}-0", 1)
    assert record == KafkaRecord(topic, 0, 0, "v", "k", 1234, (("a", b"1"), ("a", b"2")))


def test_topics_by_pattern(broker: KafkaBroker) -> None:
    for name in ("by-pattern-1", "by-pattern-2", "not-by-pattern-1"):
        broker.create_topic(name)
    source = penstock.kafka(re.compile(r"by-pattern-\d"), servers=broker.servers)
    assert source.splits == ("by-pattern-1-0", "by-pattern-2-0")
    assert source.name == "kafka"
    with pytest.raises(KafkaError, match=r"has no topic that matches nothing-\.\*"):
        penstock.kafka(re.compile("nothing-.*"), servers=broker.servers)


def test_what_is_added_is_found_and_begins_with_its_first_record(broker: KafkaBroker) -> None:
    broker.create_topic("growing-1")
    produce(broker, "growing-1", numbers(3))
    servers = broker.servers
    source = penstock.kafka(re.compile(r"growing-\d"), servers=servers, start="latest", discover="1 s")
    assert isinstance(source, GrowingSource)
    assert source.discover_every_s == 1.0
    broker.add_partitions("growing-1", 2)
    broker.create_topic("growing-2")
    produce(broker, "growing-1", numbers(2), partition=1)
    assert source.discover() == ("growing-1-0", "growing-1-1", "growing-2-0")
    assert source.start("growing-1-0") == 3
    assert source.start_of_new("growing-1-1") == 0
    assert penstock.kafka("growing-1", servers=servers, partitions=1).discover_every_s is None
    assert penstock.kafka("growing-1", servers=servers, discover=None).discover_every_s is None


def test_a_group_is_told_of_commits(broker: KafkaBroker) -> None:
    from confluent_kafka import Consumer, TopicPartition

    topic = new_topic(broker)
    produce(broker, topic, numbers(5))
    reader = penstock.kafka(topic, servers=broker.servers, group="watched").open(f"{topic}-0", 0, CLOCK)
    reader.committed(3)
    watcher = Consumer({"bootstrap.servers": broker.servers, "group.id": "watched"})
    deadline = time.monotonic() + PATIENCE_S
    offset = -1
    while offset != 3 and time.monotonic() < deadline:
        reader.read(1, 0.05)
        offset = watcher.committed([TopicPartition(topic, 0)], timeout=10)[0].offset
    assert offset == 3
    watcher.close()
    reader.close()


def test_a_topic_that_is_missing_is_refused_and_the_others_named(broker: KafkaBroker) -> None:
    topic = new_topic(broker)
    with pytest.raises(KafkaError, match=rf'has no topic "ordres"; its topics are .*{topic}'):
        penstock.kafka("ordres", servers=broker.servers)


@pytest.mark.usefixtures("impatient")
def test_no_broker_is_told_by_its_address() -> None:
    with pytest.raises(KafkaError, match=r"no Kafka broker answers at 127\.0\.0\.1:9 within 1 s"):
        penstock.kafka("orders", servers="127.0.0.1:9")


def secured(password: Any) -> dict[str, Any]:
    return {
        "security.protocol": "SASL_PLAINTEXT",
        "sasl.mechanism": "PLAIN",
        "sasl.username": "penstock",
        "sasl.password": password,
    }


def test_who_has_the_password_is_let_in_and_others_are_told(
    broker: KafkaBroker, tmp_path: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    topic = new_topic(broker)
    file = tmp_path / "password"
    file.write_text(PASSWORD + "\n")
    right = secured(penstock.secret(file=file))
    source = penstock.kafka(topic, servers=broker.secured_servers, config=right)
    assert source.start(f"{topic}-0") == 0
    assert PASSWORD not in repr(source)
    monkeypatch.setenv("OLD_PASSWORD", "open sesame")
    wrong = secured(penstock.secret(env="OLD_PASSWORD"))
    with pytest.raises(KafkaError, match="refuses the user or the password") as refused:
        penstock.kafka(topic, servers=broker.secured_servers, config=wrong)
    assert "open sesame" not in str(refused.value)


def test_tls_is_spoken_with_a_broker_that_is_believed(
    broker: KafkaBroker, monkeypatch: pytest.MonkeyPatch
) -> None:
    topic = new_topic(broker)
    config: dict[str, Any] = {"security.protocol": "SSL", "ssl.ca.location": str(broker.certificate)}
    sink = penstock.to_kafka(topic, servers=broker.tls_servers, config=config)
    sink.open(FakeContext())
    sink.write(b"sealed")
    sink.flush()
    source = penstock.kafka(topic, servers=broker.tls_servers, config=config)
    assert read_all(source, f"{topic}-0", 1)[0] == [b"sealed"]
    monkeypatch.setattr(kafka_client, "ANSWER_WITHIN_S", 1.0)
    with pytest.raises(KafkaError, match=r"certificate verify failed"):
        penstock.kafka(topic, servers=broker.tls_servers, config={"security.protocol": "SSL"})


def test_a_secret_is_never_given_as_text() -> None:
    with pytest.raises(KafkaError, match=r"sasl\.password is a secret; .*penstock\.secret\(env="):
        penstock.kafka("orders", servers="127.0.0.1:9", config=secured("open sesame"))


def test_an_offset_that_is_gone_is_told_with_those_that_are_there(broker: KafkaBroker) -> None:
    topic = new_topic(broker)
    produce(broker, topic, numbers(10))
    broker.forget(topic, 0, before=6)
    source = penstock.kafka(topic, servers=broker.servers)
    problem = until_raised(source.open(f"{topic}-0", 2, CLOCK))
    assert re.search(rf"{topic}-0 at .* holds the offsets 6 up to 10, and not 2: its retention", str(problem))


def test_a_topic_that_is_deleted_while_it_is_read_is_told(broker: KafkaBroker) -> None:
    topic = new_topic(broker)
    produce(broker, topic, numbers(1))
    config = {"topic.metadata.refresh.interval.ms": 200, "topic.metadata.propagation.max.ms": 0}
    source = penstock.kafka(topic, servers=broker.servers, config=config)
    reader = source.open(f"{topic}-0", 0, CLOCK)
    while not reader.read(10, 0.05)[0]:
        pass
    broker.delete_topic(topic)
    assert f'has no topic "{topic}"' in str(until_raised(reader))


def test_partitions_that_are_given_need_no_broker() -> None:
    source = penstock.kafka(["b", "a"], servers="127.0.0.1:9", partitions=2)
    assert source.splits == ("a-0", "a-1", "b-0", "b-1")
    flow = penstock.Flow("offline")
    flow.source(source, name="letters").map(lambda item: item.upper(), name="upper").sink(print, name="out")
    result = run(flow, {"letters": ["x"]})
    assert result["out"] == ["X"]


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ({"start": "now"}, "start must be"),
        ({"start": datetime(2026, 1, 1)}, "has no time zone"),
        ({"start": {"orders-1": 0}}, r"start names \['orders-1'\], and its partitions are \['orders-0'\]"),
        ({"value": "avro"}, "value must be bytes, text, json"),
        ({"config": {"group.id": "mine"}}, "config may not hold group.id: give group="),
        ({"partitions": 0}, "partitions must be 1 or more"),
        ({"discover": "no time"}, "'no time'"),
        ({"topics": []}, "give the name of a topic"),
        ({"topics": re.compile(".*")}, "leave partitions out"),
    ],
)
def test_what_cannot_be_meant_is_refused(arguments: dict[str, Any], words: str) -> None:
    given: dict[str, Any] = {"topics": "orders", "servers": "127.0.0.1:9", "partitions": 1, **arguments}
    with pytest.raises(KafkaError, match=words):
        penstock.kafka(given.pop("topics"), **given)


def test_settings_that_librdkafka_does_not_know_are_refused(broker: KafkaBroker) -> None:
    with pytest.raises(KafkaError, match=r'No such configuration property: "fetch\.quickly"'):
        penstock.kafka("orders", servers=broker.servers, config={"fetch.quickly": True})


def test_a_struct_of_the_script_is_refused() -> None:
    struct = msgspec.defstruct("Order", [("customer", int)], module="__main__")
    with pytest.raises(KafkaError, match="value: struct Order is defined in the script that is run"):
        penstock.kafka("orders", servers="nowhere:1", value=struct, partitions=1)
