"""The envelope: what one row of the shuffle carries for one receiver.

u8 magic, u8 layer, u8 place, u8 flags, i32 partition   where it goes (all the bridge ever reads)
u16 stream, u16 sender, i64 ship time ns, u32 items, u16 tags
tags: u32 item, i64 emit time ns, i64 origin time ns    the sampled items
u32 length, pickled list of ids                         only if the flow asks for ids
the items, by the codec of their stream
"""

import io
import pickle
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import starmap
from struct import Struct
from typing import Any, NamedTuple

import msgspec

from penstock.flow.graph import Codec
from penstock.wire.ids import ItemId

MAGIC = 0xA7
_HAS_IDS = 0x80
_HEADER = Struct("<BBBBiHHqIH")
_TAG = Struct("<Iqq")
_LENGTH = Struct("<I")
_CODECS: tuple[Codec, ...] = ("pickle", "bytes", "arrow")


class EnvelopeError(ValueError):
    """The bytes are not a whole envelope."""


class Tag(msgspec.Struct, frozen=True, gc=False):
    """A sampled item: when it was emitted, and when the source item it stems from was due.

    Times are of the flow's clock (flow_time.py), 0 where they are unknown or there is no single source item.
    """

    item: int
    emit_ns: int
    origin_ns: int


@dataclass(frozen=True, slots=True)
class Address:
    """The receiver: a partition of a layer, and the place of its unit."""

    layer: int
    partition: int
    place: int


class Envelope(NamedTuple):
    """An envelope as its receiver sees it."""

    stream: int
    sender: int
    ship_ns: int
    items: list[Any]
    ids: list[ItemId | None] | None
    tags: list[Tag]


def encode(
    address: Address,
    stream: int,
    sender: int,
    ship_ns: int,
    body: bytes,
    count: int,
    codec: Codec,
    tags: Sequence[Tag] = (),
    ids: Sequence[ItemId | None] | None = None,
) -> bytes:
    """The bytes of an envelope whose items are already coded as `body`."""
    flags = _CODECS.index(codec) | (_HAS_IDS if ids is not None else 0)
    parts = [
        _HEADER.pack(
            MAGIC,
            address.layer,
            address.place,
            flags,
            address.partition,
            stream,
            sender,
            ship_ns,
            count,
            len(tags),
        )
    ]
    for tag in tags:
        parts.append(_TAG.pack(tag.item, tag.emit_ns, tag.origin_ns))
    if ids is not None:
        block = pickle.dumps(list(ids), 5)
        parts.append(_LENGTH.pack(len(block)))
        parts.append(block)
    parts.append(body)
    return b"".join(parts)


def decode(data: bytes | memoryview) -> Envelope:
    """Read an envelope; `EnvelopeError` says what is wrong with one that is cut off or damaged."""
    view = memoryview(data)
    if len(view) < _HEADER.size:
        raise EnvelopeError(f"{len(view)} bytes are fewer than the {_HEADER.size} of a header")
    magic, _, _, flags, _, stream, sender, ship_ns, count, tag_count = _HEADER.unpack_from(view)
    if magic != MAGIC:
        raise EnvelopeError(f"begins with {magic:#04x}, not with {MAGIC:#04x}")
    at = _HEADER.size
    if len(view) < at + tag_count * _TAG.size:
        raise EnvelopeError(f"is cut off within its {tag_count} tags")
    tags_end = at + tag_count * _TAG.size
    tags = [*starmap(Tag, _TAG.iter_unpack(view[at:tags_end]))] if tag_count else []
    at = tags_end
    ids = None
    if flags & _HAS_IDS:
        if len(view) < at + 4:
            raise EnvelopeError("is cut off before its ids")
        (length,) = _LENGTH.unpack_from(view, at)
        at += 4
        ids = _load(pickle.loads, view[at : at + length], "ids", count)
        at += length
    number = flags & ~_HAS_IDS
    if number >= len(_CODECS):
        raise EnvelopeError(f"has the unknown codec {number}")
    items = _load(_LOADERS[_CODECS[number]], view[at:], "items", count)
    return Envelope(stream, sender, ship_ns, items, ids, tags)


def dump_items(items: list[Any], codec: Codec) -> bytes:
    """Code items; raises whatever the codec raises for an item that it cannot carry."""
    return _DUMPERS[codec](items)


def _load(load: Callable[[memoryview], Any], block: memoryview, what: str, count: int) -> list[Any]:
    try:
        values = load(block)
    except Exception as problem:
        raise EnvelopeError(f"{what} cannot be read: {problem}") from problem
    if not isinstance(values, list) or len(values) != count:
        raise EnvelopeError(f"says it holds {count} {what}, and does not")
    return values


def _dump_pickle(items: list[Any]) -> bytes:
    return pickle.dumps(items, 5)


def _dump_bytes(items: list[Any]) -> bytes:
    for item in items:
        if not isinstance(item, bytes | bytearray | memoryview):
            raise TypeError(f"a stream coded as bytes got {type(item).__name__}: {item!r:.80}")
    # Coded before it is measured: the length of a memoryview counts its elements, not its bytes.
    return b"".join([_LENGTH.pack(len(raw)) + raw for raw in map(bytes, items)])


def _load_bytes(block: memoryview) -> list[bytes]:
    items = []
    at = 0
    while at < len(block):
        (length,) = _LENGTH.unpack_from(block, at)
        item = bytes(block[at + 4 : at + 4 + length])
        if len(item) != length:
            raise ValueError("cut off")
        items.append(item)
        at += 4 + length
    return items


def _dump_arrow(items: list[Any]) -> bytes:
    import pyarrow as pa

    blocks = []
    for item in items:
        if not isinstance(item, pa.RecordBatch | pa.Table):
            raise TypeError(
                f"a stream coded as arrow got {type(item).__name__}; give it record batches or tables"
            )
        sink = io.BytesIO()
        with pa.ipc.new_stream(sink, item.schema) as writer:
            writer.write(item)
        blocks.append(sink.getvalue())
    return _dump_bytes(blocks)


def _load_arrow(block: memoryview) -> list[Any]:
    import pyarrow as pa

    return [pa.ipc.open_stream(item).read_all() for item in _load_bytes(block)]


_DUMPERS: dict[Codec, Callable[[list[Any]], bytes]] = {
    "pickle": _dump_pickle,
    "bytes": _dump_bytes,
    "arrow": _dump_arrow,
}
_LOADERS: dict[Codec, Callable[[memoryview], Any]] = {
    "pickle": pickle.loads,
    "bytes": _load_bytes,
    "arrow": _load_arrow,
}
