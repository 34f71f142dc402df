"""Decoders and encoders that are told of topic, field and headers; a schema registry on loopback."""

import json
import threading
import urllib.request
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from types import SimpleNamespace
from typing import Any, ClassVar

import cloudpickle
import pytest

import penstock
from penstock.io import KafkaError, KafkaRecord
from penstock.io.kafka_codecs import Field, field_decoder, field_encoder
from penstock.io.protocol import Refused, SourceClock
from penstock.testing import KafkaBroker
from tests.io.sink_context import FakeContext
from tests.kafka_cluster import consumed, new_topic, produce


class Registry(BaseHTTPRequestHandler):
    """Gives every schema a number: POST /subjects/NAME/versions, GET /schemas/ids/NUMBER."""

    schemas: ClassVar[list[tuple[str, list[str]]]] = []

    def do_POST(self) -> None:
        schema = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        self.schemas.append((self.path.split("/")[2], schema))
        self._say({"id": len(self.schemas) - 1})

    def do_GET(self) -> None:
        self._say(self.schemas[int(self.path.split("/")[3])][1])

    def _say(self, answer: Any) -> None:
        body = json.dumps(answer).encode()
        self.send_response(200)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: Any) -> None:
        """Nothing: it would be among what tests say."""


@pytest.fixture
def registry() -> Iterator[str]:
    Registry.schemas.clear()
    with ThreadingHTTPServer(("127.0.0.1", 0), Registry) as server:
        threading.Thread(target=server.serve_forever, args=(0.02,), daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}"
        server.shutdown()


def asked(url: str, body: Any = None) -> Any:
    data = None if body is None else json.dumps(body).encode()
    with urllib.request.urlopen(urllib.request.Request(url, data), timeout=10) as answer:
        return json.load(answer)


@dataclass(frozen=True)
class Written:
    """A schema is the names of the fields; its number goes in front of their values."""

    registry: str
    fields: tuple[str, ...]

    def open(self, topic: str, field: Field) -> Callable[[Any, dict[str, bytes]], bytes]:
        url = f"{self.registry}/subjects/{topic}-{field}/versions"
        number = asked(url, list(self.fields))["id"]

        def encode(item: Any, headers: dict[str, bytes]) -> bytes:
            headers[f"{field}-fields"] = b"%d" % len(self.fields)
            return bytes([0, number]) + json.dumps([item[name] for name in self.fields]).encode()

        return encode


@dataclass(frozen=True)
class Read:
    registry: str

    def open(self, topic: str, field: Field) -> Callable[[bytes, list[tuple[str, bytes | None]]], Any]:
        known: dict[int, list[str]] = {}

        def decode(data: bytes, headers: list[tuple[str, bytes | None]]) -> Any:
            if data[0] != 0:
                raise ValueError(f"{topic}: its {field} has no schema")
            number = data[1]
            if number not in known:
                known[number] = asked(f"{self.registry}/schemas/ids/{number}")
            assert dict(headers)[f"{field}-fields"] == b"%d" % len(known[number])
            return dict(zip(known[number], json.loads(data[2:]), strict=True))

        return decode


def test_a_registry_at_both_ends(broker: KafkaBroker, registry: str) -> None:
    left, right = new_topic(broker), new_topic(broker)
    sink = penstock.to_kafka(
        lambda order: left if order["number"] < 3 else right,
        servers=broker.servers,
        key=lambda order: {"customer": order["customer"]},
        value=Written(registry, ("number", "customer")),
        encode_key=Written(registry, ("customer",)),
    )
    sink = cloudpickle.loads(cloudpickle.dumps(sink))
    sink.open(FakeContext(headers={"from": b"here"}))
    orders = [{"number": number, "customer": "ada"} for number in range(1, 5)]
    for order in orders:
        sink.write(order)
    sink.close()
    assert sorted(subject for subject, _ in Registry.schemas) == sorted(
        f"{topic}-{field}" for topic in (left, right) for field in ("key", "value")
    ), "asked once for each topic and field"

    produce(broker, right, [b"\x07?"])
    source = penstock.kafka(
        [left, right], servers=broker.servers, value=Read(registry), key=Read(registry), records=True
    )
    client = cloudpickle.loads(cloudpickle.dumps(source)).open_jointly({f"{left}-0": 0, f"{right}-0": 0})
    found: list[KafkaRecord] = []
    refused: list[Refused] = []
    while len(found) < 4 or not refused:
        for split in client.await_any(64, 0.05):
            found += client.readers[split].read(64, 0)[0]
            refused += client.readers[split].refused
    client.close()
    assert sorted((one.value["number"], one.topic) for one in found) == [
        (1, left),
        (2, left),
        (3, right),
        (4, right),
    ]
    assert [one.key for one in found] == [{"customer": "ada"}] * 4
    assert ("from", b"here") in found[0].headers
    (one,) = refused
    assert (one.raw.offset, str(one.problem)) == (2, f"{right}: its value has no schema")


def test_in_a_flow_too_items_come_decoded(broker: KafkaBroker, registry: str) -> None:
    topic = new_topic(broker)
    sink = penstock.to_kafka(topic, servers=broker.servers, value=Written(registry, ("number",)))
    sink.open(FakeContext())
    sink.write({"number": 7})
    sink.close()
    (message,) = consumed(broker, topic)
    assert message.headers() == [("value-fields", b"1")], "what the encoder has added"
    for metadata in (False, True):
        source = penstock.kafka(topic, servers=broker.servers, value=Read(registry), metadata=metadata)
        reader = source.open(f"{topic}-0", 0, SourceClock(0, 0))
        items: list[Any] = []
        while not items:
            items = reader.read(1, 0.05)[0]
        reader.close()
        assert [getattr(one, "value", one) for one in items] == [{"number": 7}]


def test_what_opens_nothing_is_told() -> None:
    nothing = SimpleNamespace(open=lambda topic, field: None)
    with pytest.raises(KafkaError, match=r'open\("orders", "value"\) must give a function of two arguments'):
        field_decoder("value", nothing)("orders")
    with pytest.raises(KafkaError, match=r'open\("orders", "key"\) must give a function'):
        field_encoder("key", nothing)("orders", 1, {})


def test_a_key_that_is_missing_cannot_be_encoded() -> None:
    with pytest.raises(KafkaError, match="encode_key says how keys are written; give key= too"):
        penstock.to_kafka("orders", servers="127.0.0.1:9", encode_key="json")
    with pytest.raises(KafkaError, match="encode_key must be bytes, text, json"):
        penstock.to_kafka("orders", servers="127.0.0.1:9", key=str, encode_key="avro")  # type: ignore[call-overload]
