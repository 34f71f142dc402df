"""What is written to Kafka for an item: its topic, value, key and headers."""

from collections.abc import Callable
from typing import Any, Final, NamedTuple

from penstock.io.kafka_codecs import Encoding, field_encoder
from penstock.io.protocol import SinkContext

ID_HEADER: Final = "penstock-id"
"""The header that holds the id of an item, its numbers with dots between them."""


class Writing(NamedTuple):
    """How items become records, as the user has said it."""

    topic: str | Callable[[Any], str]
    key: Callable[[Any], Any] | None
    value: Encoding
    encode_key: Encoding | None

    @property
    def named(self) -> str | None:
        """The topic, if it is always the same."""
        return self.topic if isinstance(self.topic, str) else None

    def open(self, context: SinkContext) -> Callable[[Any], "Made"]:
        """In the process that writes: a function of an item."""
        topic, key_of = self.topic, self.key
        encode = field_encoder("value", self.value)
        encode_key = field_encoder("key", _bytes_or_text if self.encode_key is None else self.encode_key)

        def made(item: Any) -> Made:
            to = topic if isinstance(topic, str) else topic(item)
            headers = _headers(context)
            key = None if key_of is None else key_of(item)
            encoded = None if key is None else encode_key(to, key, headers)
            return Made(to, encode(to, item, headers), encoded, headers or None)

        return made


class Made(NamedTuple):
    """A record; one without a value is what Kafka calls a tombstone."""

    topic: str
    value: bytes | None
    key: bytes | None
    headers: dict[str, bytes] | None


def _headers(context: SinkContext) -> dict[str, bytes]:
    """Those of the item, and its id."""
    headers, item_id = context.headers, context.item_id
    if item_id is None:
        return {**headers}
    return {**headers, ID_HEADER: ".".join(map(str, item_id)).encode()}


def _bytes_or_text(key: Any) -> bytes:
    return key if isinstance(key, bytes) else str(key).encode()
