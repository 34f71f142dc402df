"""Envelopes: what goes in comes out, and what is damaged is refused in one way only."""

from collections.abc import Sequence
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.flow.codec import KnownCodec
from penstock.flow.record import Metadata
from penstock.wire.codecs import KNOWN
from penstock.wire.envelope import (
    MAGIC,
    Address,
    Envelope,
    EnvelopeError,
    Tag,
    decode,
    encode,
)
from penstock.wire.ids import ItemId

HEADER = 26
moments_ns = st.integers(-(2**63), 2**63 - 1)
tags = st.builds(Tag, st.integers(0, 2**32 - 1), moments_ns, moments_ns, moments_ns)
item_ids = st.none() | st.lists(st.integers(0, 2**40), min_size=2, max_size=5).map(tuple)
metadata = st.none() | st.builds(
    Metadata,
    st.dictionaries(st.text(max_size=3), st.binary(max_size=3), max_size=2),
    st.none() | st.integers(),
    st.none() | st.binary(max_size=3),
)
leaves = st.none() | st.booleans() | st.integers() | st.text() | st.binary() | st.floats(allow_nan=False)
anything = st.recursive(
    leaves, lambda inner: st.lists(inner, max_size=3) | st.tuples(inner, inner), max_leaves=5
)
tables = st.lists(st.integers(-100, 100), max_size=4).map(
    lambda values: pa.table({"value": pa.array(values)})
)
coded: st.SearchStrategy[tuple[KnownCodec, list[Any]]] = st.one_of(
    st.tuples(st.just("pickle"), st.lists(anything, max_size=6)),
    st.tuples(st.just("bytes"), st.lists(st.binary(max_size=20), max_size=6)),
    st.tuples(st.just("arrow"), st.lists(tables, max_size=3)),
)


@st.composite
def envelopes(draw: st.DrawFn) -> tuple[bytes, Envelope]:
    """The bytes of an envelope, and what it is to its receiver."""
    codec, items = draw(coded)
    ids: list[ItemId | None] | None = None
    if draw(st.booleans()):
        ids = draw(st.lists(item_ids, min_size=len(items), max_size=len(items)))
    known: list[Metadata | None] | None = None
    if draw(st.booleans()):
        known = draw(st.lists(metadata, min_size=len(items), max_size=len(items)))
    made = Envelope(
        stream=draw(st.integers(0, 2**16 - 1)),
        sender=draw(st.integers(0, 2**16 - 1)),
        ship_ns=draw(moments_ns),
        items=items,
        ids=ids,
        tags=draw(st.lists(tags, max_size=3)),
        metadata=known,
    )
    address = Address(draw(st.integers(0, 255)), draw(st.integers(0, 2**31 - 1)), draw(st.integers(0, 255)))
    coder = KNOWN[codec]
    body = coder.dump(items)
    head = (address, made.stream, made.sender, made.ship_ns)
    return encode(*head, body, len(items), coder.number, made.tags, ids, known), made


@given(envelopes())
def test_round_trip(made: tuple[bytes, Envelope]) -> None:
    data, envelope = made
    assert decode(data) == envelope
    assert decode(memoryview(b"before" + data)[6:]) == envelope


@given(envelopes(), st.data())
def test_cut_off_anywhere_it_is_refused(made: tuple[bytes, Envelope], data: st.DataObject) -> None:
    whole, envelope = made
    end = data.draw(st.integers(0, len(whole) - 1))
    try:
        found = decode(whole[:end])
    except EnvelopeError:
        return
    assert len(found.items) == len(envelope.items)


# Arrow itself vouches for its own bytes only where they are cut off, so its bodies are left whole here.
@given(envelopes(), st.data())
def test_damaged_anywhere_it_is_refused_or_holds_as_many_items_as_it_says(
    made: tuple[bytes, Envelope], data: st.DataObject
) -> None:
    damaged = bytearray(made[0])
    arrow = damaged[3] & 0x3F == 2
    for _ in range(data.draw(st.integers(1, 3))):
        position = data.draw(st.integers(0, HEADER - 1 if arrow else len(damaged) - 1))
        damaged[position] = data.draw(st.integers(0, 255))
    try:
        found = decode(bytes(damaged))
    except EnvelopeError:
        return
    said = int.from_bytes(damaged[20:24], "little")
    assert len(found.items) == said
    assert found.ids is None or len(found.ids) == said
    assert found.metadata is None or len(found.metadata) == said


@given(st.binary(max_size=200))
def test_anything_else_is_refused(data: bytes) -> None:
    with pytest.raises(EnvelopeError):
        decode(data)


def sealed(
    body: bytes,
    count: int = 1,
    codec: KnownCodec = "bytes",
    ids: Sequence[ItemId] | None = None,
    known: Sequence[Metadata] | None = None,
) -> bytes:
    return encode(Address(1, 2, 0), 0, 0, 0, body, count, KNOWN[codec].number, [Tag(0, 1, 2)], ids, known)


@pytest.mark.parametrize(
    ("data", "problem"),
    [
        (b"", "0 bytes are fewer than the 26 of a header"),
        (bytes(30), "begins with 0x00, not with 0xa7"),
        (sealed(b"")[:30], "is cut off within its 1 tags"),
        (sealed(b"", ids=[(0, 1)])[:55], "is cut off before its ids"),
        (sealed(b"", ids=[(0, 1), (0, 2)]), "says it holds 1 ids, and does not"),
        (sealed(b"", known=[Metadata()])[:55], "is cut off before its metadata"),
        (sealed(b"", known=[Metadata(), Metadata()]), "says it holds 1 metadata, and does not"),
        (sealed(b""), "says it holds 1 items, and does not"),
        (sealed(b"\x09\x00\x00\x00abc"), "items cannot be read: cut off"),
        (sealed(b"")[:3] + b"\x05" + sealed(b"")[4:], "has the unknown codec 5"),
    ],
)
def test_says_what_is_wrong(data: bytes, problem: str) -> None:
    with pytest.raises(EnvelopeError) as caught:
        decode(data)
    assert str(caught.value) == problem


def test_the_bridge_finds_the_address_in_the_first_eight_bytes() -> None:
    data = encode(Address(layer=3, partition=70_000, place=2), 9, 9, 9, b"", 0, KNOWN["pickle"].number)
    assert data[:3] == bytes([MAGIC, 3, 2])
    assert int.from_bytes(data[4:8], "little", signed=True) == 70_000


def test_bytes_are_any_buffer_of_any_element() -> None:
    items = [b"ab", bytearray(b"cd"), memoryview(b"ef"), memoryview(bytes(8)).cast("i")]
    data = sealed(KNOWN["bytes"].dump(items), count=4)
    assert decode(data).items == [b"ab", b"cd", b"ef", bytes(8)]


@pytest.mark.parametrize(
    ("codec", "problem"),
    [
        ("bytes", "a stream coded as bytes got str: 'text'"),
        ("arrow", "a stream coded as arrow got str; give it record batches or tables"),
    ],
)
def test_items_of_another_kind_are_refused(codec: KnownCodec, problem: str) -> None:
    with pytest.raises(TypeError) as caught:
        KNOWN[codec].dump(["text"])
    assert str(caught.value) == problem
