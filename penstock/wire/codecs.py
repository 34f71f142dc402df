"""Coders: the items of one envelope to its body and back, by the codec of their stream."""

import pickle
from collections.abc import Callable
from struct import Struct
from typing import Any, NamedTuple

from penstock.flow.codec import Codec, ItemCodec, KnownCodec, ManyCodec, codec_name
from penstock.wire.arrow_body import dump_arrow, load_arrow

OWN = 3
"""The number of every codec that is an object of the user's: only the plan of the flow knows it."""

_LENGTH = Struct("<I")


class CodecError(Exception):
    """A codec of the user's raised; the message names it, its stream and what it raised."""


class Unread(NamedTuple):
    """An item that its codec could not read: the bytes that came, and why."""

    data: bytes
    problem: CodecError


class Coder(NamedTuple):
    """How a stream's items are coded. `load` may have `Unread` in place of an item if `number` is OWN."""

    number: int
    dump: Callable[[list[Any]], bytes]
    load: Callable[[memoryview], list[Any]]


def coder_of(codec: Codec, stream: str) -> Coder:
    """The coder of a stream."""
    if isinstance(codec, str):
        return KNOWN[codec]
    own = _Many(codec, stream) if isinstance(codec, ManyCodec) else _Own(codec, stream)
    return Coder(OWN, own.dump, own.load)


class _Own:
    """Item by item, each behind its length."""

    def __init__(self, codec: ItemCodec, stream: str) -> None:
        self._codec = codec
        self._who = f'codec {codec_name(codec)} of stream "{stream}"'

    def dump(self, items: list[Any]) -> bytes:
        return _framed([self._dumped(item) for item in items])

    def load(self, block: memoryview) -> list[Any]:
        return [self._loaded(data) for data in _parts(block)]

    def _dumped(self, item: Any) -> bytes:
        try:
            data = self._codec.dumps(item)
        except Exception as problem:
            raise CodecError(f"{self._who}: dumps raised {_words(problem)}") from problem
        if isinstance(data, str):
            return data.encode()
        if not isinstance(data, bytes):
            raise CodecError(f"{self._who}: dumps must return bytes, not {type(data).__name__}: {data!r:.80}")
        return data

    def _loaded(self, data: bytes) -> Any:
        try:
            return self._codec.loads(data)
        except Exception as problem:  # noqa: BLE001 - users' code may raise anything
            made = CodecError(f"{self._who}: loads raised {_words(problem)}")
            made.__cause__ = problem
            return Unread(data, made)


class _Many(_Own):
    """All items at once; one by one where that fails, to find the one at fault."""

    _codec: ManyCodec

    def dump(self, items: list[Any]) -> bytes:
        try:
            return self._codec.dumps_many(items)
        except Exception as problem:
            raise CodecError(f"{self._who}: dumps_many raised {_words(problem)}") from problem

    def load(self, block: memoryview) -> list[Any]:
        try:
            return self._codec.loads_many(block)
        except Exception:  # noqa: BLE001 - said of the items, one by one
            return [self._loaded(data) for data in self._codec.split(block)]


def _words(problem: Exception) -> str:
    return f"{type(problem).__name__}: {problem}"


def _dump_pickle(items: list[Any]) -> bytes:
    return pickle.dumps(items, 5)


def _dump_bytes(items: list[Any]) -> bytes:
    for item in items:
        if not isinstance(item, bytes | bytearray | memoryview):
            raise TypeError(f"a stream coded as bytes got {type(item).__name__}: {item!r:.80}")
    # Coded before it is measured: the length of a memoryview counts its elements, not its bytes.
    return _framed([*map(bytes, items)])


def _framed(parts: list[bytes]) -> bytes:
    return b"".join([_LENGTH.pack(len(part)) + part for part in parts])


def _parts(block: memoryview) -> list[bytes]:
    parts = []
    at = 0
    while at < len(block):
        (length,) = _LENGTH.unpack_from(block, at)
        part = bytes(block[at + 4 : at + 4 + length])
        if len(part) != length:
            raise ValueError("cut off")
        parts.append(part)
        at += 4 + length
    return parts


KNOWN: dict[KnownCodec, Coder] = {
    "pickle": Coder(0, _dump_pickle, pickle.loads),
    "bytes": Coder(1, _dump_bytes, _parts),
    "arrow": Coder(2, dump_arrow, load_arrow),
}
