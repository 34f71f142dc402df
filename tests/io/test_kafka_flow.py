"""From topic to topic with a real broker and without Spark: the worker's own parts in this process."""

import json

import penstock
from penstock.io.kafka_records import ID_HEADER
from penstock.testing import KafkaBroker, run
from penstock.wire.ids import origin_of
from penstock.worker.context import Context
from tests.kafka_cluster import consumed, new_topic, produce


def test_items_ids_and_letters_from_topic_to_topic(broker: KafkaBroker) -> None:
    source, sink = new_topic(broker), new_topic(broker)
    produce(broker, source, [b"1", b"2", b"no number", b"4"])
    flow = penstock.Flow("bridge", ids=True)
    numbers = flow.source(
        penstock.kafka(source, servers=broker.servers, value="json"), name="numbers", on_error="dead_letter"
    )
    tens = numbers.map(lambda number: 10 * number, name="tens")
    tens.sink(penstock.to_kafka(sink, servers=broker.servers, value="json"), name="results")
    result = run(flow, until="3 s", commit="1 s", write=True)
    assert result["results"] == [10, 20, 40]
    messages = consumed(broker, sink)
    assert [json.loads(message.value()) for message in messages] == [10, 20, 40]
    ids = [dict(message.headers())[ID_HEADER].split(b".")[:2] for message in messages]
    origin = b"%d" % origin_of("numbers", f"{source}-0")
    assert ids == [[origin, b"0"], [origin, b"1"], [origin, b"3"]]
    (letter,) = result.dead_letters
    assert "offset=2" in letter.item
    assert "no number" in letter.item


class Stamped:
    """Sends what it finds in its context beside the item."""

    def open(self, context: Context) -> None:
        self.context = context

    def process(self, item: str, out: penstock.Out[str]) -> None:
        known = self.context
        out(f"{item} {known.key!r} {sorted(known.headers)} {known.timestamp}")


def test_metadata_come_from_a_topic_and_headers_go_to_one(broker: KafkaBroker) -> None:
    from confluent_kafka import Producer

    source, sink = new_topic(broker), new_topic(broker)
    producer = Producer({"bootstrap.servers": broker.servers})
    producer.produce(source, b"one", b"k1", headers=[("trace", b"7"), ("empty", None)], timestamp=1234)
    producer.produce(source, b"two", timestamp=5678)
    producer.flush()
    flow = penstock.Flow("bridge")
    texts = flow.source(penstock.kafka(source, servers=broker.servers, value="text", metadata=True), name="t")
    texts.task(Stamped).sink(penstock.to_kafka(sink, servers=broker.servers, value="text"), name="results")
    result = run(flow, until="3 s", write=True)
    assert result["results"] == ["one b'k1' ['trace'] 1234", "two None [] 5678"]
    assert [dict(message.headers() or ()) for message in consumed(broker, sink)] == [{"trace": b"7"}, {}]
