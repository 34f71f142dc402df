"""The envelope: what one row of the shuffle carries for one receiver.

u8 magic, u8 layer, u8 place, u8 flags, i32 partition   where it goes (all the bridge ever reads)
u16 stream, u16 sender, i64 ship time ns, u32 items, u16 tags
tags: u32 item, i64 emit, origin and entry time ns      the sampled items
u32 length, pickled list of ids                         only if the flow asks for ids
u32 length, pickled list of metadata                    only if an item has any
the items, by the codec of their stream
"""

import pickle
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import starmap
from struct import Struct
from typing import Any, NamedTuple

import msgspec

from penstock.flow.record import Metadata
from penstock.wire.codecs import KNOWN, OWN, Coder, Unread
from penstock.wire.ids import ItemId

MAGIC = 0xA7
_HAS_IDS = 0x80
_HAS_METADATA = 0x40
_LABELLED = _HAS_IDS | _HAS_METADATA
_HEADER = Struct("<BBBBiHHqIH")
_TAG = Struct("<Iqqq")
_LENGTH = Struct("<I")
_LOADERS = [coder.load for coder in sorted(KNOWN.values())]


class EnvelopeError(ValueError):
    """The bytes are not a whole envelope."""


class Tag(msgspec.Struct, frozen=True, gc=False):
    """A sampled item: when it was emitted, when the source item it stems from was due, and when it entered
    the sequence of the constraint that its stream belongs to, if that was on an earlier stream or in a task.

    Times are of the flow's clock (flow_time.py), 0 where they are unknown or there is no such time.
    """

    item: int
    emit_ns: int
    origin_ns: int
    entry_ns: int = 0


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
    metadata: list[Metadata | None] | None = None
    unread: bool = False
    """Whether some of the items are `Unread`: their codec could not read them."""


def picked(envelope: Envelope, places: Sequence[int]) -> Envelope:
    """An envelope of some of the items of another, in their order, with all that belongs to them."""
    ids, metadata = envelope.ids, envelope.metadata
    at = {place: number for number, place in enumerate(places)}
    return envelope._replace(
        items=[envelope.items[place] for place in places],
        ids=None if ids is None else [ids[place] for place in places],
        metadata=None if metadata is None else [metadata[place] for place in places],
        tags=[msgspec.structs.replace(tag, item=at[tag.item]) for tag in envelope.tags if tag.item in at],
    )


def encode(
    address: Address,
    stream: int,
    sender: int,
    ship_ns: int,
    body: bytes,
    count: int,
    codec: int,
    tags: Sequence[Tag] = (),
    ids: Sequence[ItemId | None] | None = None,
    metadata: Sequence[Metadata | None] | None = None,
) -> bytes:
    """The bytes of an envelope whose items are already coded as `body`, by the coder of that number."""
    flags = codec
    if ids is not None:
        flags |= _HAS_IDS
    if metadata is not None:
        flags |= _HAS_METADATA
    layer, place, partition = address.layer, address.place, address.partition
    header = _HEADER.pack(MAGIC, layer, place, flags, partition, stream, sender, ship_ns, count, len(tags))
    if not tags and ids is None and metadata is None:
        return header + body
    parts = [header]
    for tag in tags:
        parts.append(_TAG.pack(tag.item, tag.emit_ns, tag.origin_ns, tag.entry_ns))
    for labels in (ids, metadata):
        if labels is not None:
            block = pickle.dumps(list(labels), 5)
            parts.append(_LENGTH.pack(len(block)))
            parts.append(block)
    parts.append(body)
    return b"".join(parts)


def decode(data: bytes | memoryview, coders: Sequence[Coder] = ()) -> Envelope:
    """Read an envelope; `EnvelopeError` says what is wrong with one that is cut off or damaged.

    `coders` are those of the flow's streams: only they know the codecs that are objects of the user's.
    """
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
    ids = metadata = None
    if flags & _HAS_IDS:
        ids, at = _load_labels(view, at, "ids", count)
    if flags & _HAS_METADATA:
        metadata, at = _load_labels(view, at, "metadata", count)
    number = flags & ~_LABELLED
    if number < OWN:
        items = _load(_LOADERS[number], view[at:], "items", count)
        return Envelope(stream, sender, ship_ns, items, ids, tags, metadata)
    if number > OWN or stream >= len(coders):
        raise EnvelopeError(f"has the unknown codec {number}")
    items = _load(coders[stream].load, view[at:], "items", count)
    unread = any(type(item) is Unread for item in items)
    return Envelope(stream, sender, ship_ns, items, ids, tags, metadata, unread)


def _load_labels(view: memoryview, at: int, what: str, count: int) -> tuple[list[Any], int]:
    """One for each item, and where they end."""
    if len(view) < at + 4:
        raise EnvelopeError(f"is cut off before its {what}")
    (length,) = _LENGTH.unpack_from(view, at)
    end = at + 4 + length
    return _load(pickle.loads, view[at + 4 : end], what, count), end


def _load(load: Callable[[memoryview], Any], block: memoryview, what: str, count: int) -> list[Any]:
    try:
        values = load(block)
    except Exception as problem:
        raise EnvelopeError(f"{what} cannot be read: {problem}") from problem
    if not isinstance(values, list) or len(values) != count:
        raise EnvelopeError(f"says it holds {count} {what}, and does not")
    return values
