"""How the bytes of a record become an item, and an item the bytes of a record."""

import dataclasses
from collections.abc import Callable
from typing import Any, Final, Literal, TypeAlias

import msgspec

from penstock.io.importable import refuse_unimportable
from penstock.io.kafka_client import KafkaError

Named = Literal["bytes", "text", "json"]
Decode: TypeAlias = Callable[[bytes], Any]
Encode: TypeAlias = Callable[[Any], bytes]
Decoding: TypeAlias = Named | Decode | type
Encoding: TypeAlias = Named | Encode

_NAMED: Final = ("bytes", "text", "json")


def checked_decoding(decoding: Any, where: str) -> Decoding:
    """One of the names, a type that JSON is read into, or a function of bytes."""
    refuse_unimportable(decoding, where, KafkaError)
    if decoding in _NAMED or callable(decoding):
        return decoding  # type: ignore[no-any-return]
    raise KafkaError(
        f"{where} must be bytes, text, json, a msgspec struct or dataclass, or a function of bytes,"
        f" not {decoding!r}"
    )


def checked_encoding(encoding: Any, where: str) -> Encoding:
    """One of the names, or a function that makes bytes."""
    if encoding in _NAMED or (callable(encoding) and not isinstance(encoding, type)):
        return encoding  # type: ignore[no-any-return]
    raise KafkaError(f"{where} must be bytes, text, json or a function that makes bytes, not {encoding!r}")


def decoder(decoding: Decoding) -> Decode:
    """The function, made in the process that uses it."""
    if isinstance(decoding, str):
        named: dict[str, Decode] = {"bytes": _as_it_is, "text": _text, "json": msgspec.json.decode}
        return named[decoding]
    if isinstance(decoding, type) and (
        issubclass(decoding, msgspec.Struct) or dataclasses.is_dataclass(decoding)
    ):
        return msgspec.json.Decoder(decoding).decode
    return decoding


def encoder(encoding: Encoding) -> Encode:
    """The function, made in the process that uses it."""
    if isinstance(encoding, str):
        named: dict[str, Encode] = {"bytes": _bytes, "text": str.encode, "json": msgspec.json.encode}
        return named[encoding]
    return encoding


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
