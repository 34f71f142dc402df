"""How the bytes of a record become an item, and an item the bytes of a record."""

import dataclasses
from collections.abc import Callable
from functools import cache
from operator import methodcaller
from typing import Any, Final, Literal, Protocol, TypeAlias, TypeGuard, cast

import msgspec

from penstock.io.importable import refuse_unimportable
from penstock.io.kafka_client import KafkaError

Named = Literal["bytes", "text", "json"]
Decode: TypeAlias = Callable[[bytes], Any]
Encode: TypeAlias = Callable[[Any], bytes]
Field: TypeAlias = Literal["key", "value"]


class TopicDecoder(Protocol):
    """For decoders that must know topic, field and headers of a record, as those of schema registries do.

    It travels to the workers, so it holds addresses and no connections.
    """

    def open(self, topic: str, field: Field, /) -> Callable[[bytes, list[tuple[str, bytes | None]]], Any]:
        """Called by the process that reads, once for each topic: a function of the bytes and the headers."""
        ...


class TopicEncoder(Protocol):
    """The same for encoders; it travels to the workers too."""

    def open(self, topic: str, field: Field, /) -> Callable[[Any, dict[str, bytes]], bytes]:
        """Called by the process that writes, once for each topic: a function of what is to be written and of
        the headers that will be sent, to which it may add."""
        ...


Decoding: TypeAlias = Named | Decode | type | TopicDecoder
Encoding: TypeAlias = Named | Encode | TopicEncoder

_NAMED: Final = ("bytes", "text", "json")


def checked_decoding(decoding: Any, where: str) -> Decoding:
    """One of the names, a type that JSON is read into, a function of bytes, or what opens one."""
    refuse_unimportable(decoding, where, KafkaError)
    if decoding in _NAMED or callable(decoding) or of_topics(decoding):
        return decoding  # type: ignore[no-any-return]
    raise KafkaError(
        f"{where} must be bytes, text, json, a msgspec struct or dataclass, a function of bytes, or an object"
        f" with open(topic, field), not {decoding!r}"
    )


def checked_encoding(encoding: Any, where: str) -> Encoding:
    """One of the names, a function that makes bytes, or what opens one."""
    if not isinstance(encoding, type) and (encoding in _NAMED or callable(encoding) or of_topics(encoding)):
        return encoding  # type: ignore[no-any-return]
    raise KafkaError(
        f"{where} must be bytes, text, json, a function that makes bytes, or an object with"
        f" open(topic, field), not {encoding!r}"
    )


def of_topics(coding: object) -> TypeGuard[TopicDecoder | TopicEncoder]:
    """Whether it opens one for each topic."""
    return not isinstance(coding, type) and callable(getattr(coding, "open", None))


def opened(coding: TopicDecoder | TopicEncoder, field: Field) -> Callable[[str], Callable[[Any, Any], Any]]:
    """What it opens for a topic, once for each."""

    @cache
    def of(topic: str) -> Callable[[Any, Any], Any]:
        found: object = coding.open(topic, field)
        if not callable(found):
            raise KafkaError(
                f'{type(coding).__name__}.open("{topic}", "{field}") must give a function of two arguments,'
                f" not {found!r}"
            )
        return found

    return of


def decoder(decoding: Named | Decode | type) -> Decode:
    """The function, made in the process that uses it."""
    if isinstance(decoding, str):
        named: dict[str, Decode] = {"bytes": _as_it_is, "text": _text, "json": msgspec.json.decode}
        return named[decoding]
    if isinstance(decoding, type) and (
        issubclass(decoding, msgspec.Struct) or dataclasses.is_dataclass(decoding)
    ):
        return msgspec.json.Decoder(decoding).decode
    return decoding


def encoder(encoding: Named | Encode) -> Encode:
    """The function, made in the process that uses it."""
    if isinstance(encoding, str):
        named: dict[str, Encode] = {"bytes": _bytes, "text": str.encode, "json": msgspec.json.encode}
        return named[encoding]
    return encoding


def field_encoder(field: Field, encoding: Encoding) -> Callable[[str, Any, dict[str, bytes]], bytes]:
    """A function of topic, item and headers."""
    if of_topics(encoding):
        of_topic = opened(encoding, field)
        return lambda topic, item, headers: of_topic(topic)(item, headers)
    encode = encoder(cast("Named | Encode", encoding))
    return lambda _topic, item, _headers: encode(item)


def field_decoder(field: Field, decoding: Decoding) -> Callable[[str], Callable[[Any], Any]]:
    """By topic: what takes the key or the value out of a message, decoded; None stays None."""
    taken = methodcaller(field)
    if of_topics(decoding):
        of_topic = opened(decoding, field)

        def opened_for(topic: str) -> Callable[[Any], Any]:
            decode_of_topic = of_topic(topic)

            def decoded_with_headers(message: Any) -> Any:
                data = taken(message)
                return None if data is None else decode_of_topic(data, message.headers() or [])

            return decoded_with_headers

        return opened_for
    decode = decoder(cast("Named | Decode | type", decoding))

    def decoded(message: Any) -> Any:
        data = taken(message)
        return None if data is None else decode(data)

    return lambda _topic: decoded


def _as_it_is(data: bytes) -> bytes:
    return data


def _text(data: bytes) -> str:
    return data.decode("utf-8")


def _bytes(item: Any) -> bytes:
    if not isinstance(item, bytes):
        raise TypeError(
            f'to_kafka: {type(item).__name__} is no bytes; say how to write it, as in value="json"'
        )
    return item
