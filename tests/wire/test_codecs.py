"""Codecs of the user's, msgspec's and Arrow's: round trips, no copies, and errors in the user's words."""

import json
import pickle
import socket
from typing import Any

import cloudpickle
import msgspec
import pyarrow as pa
import pytest

from penstock import msgspec_codec
from penstock.wire import frames
from penstock.wire.codecs import KNOWN, OWN, CodecError, Unread, coder_of
from penstock.wire.envelope import Address, decode, encode


class Reading(msgspec.Struct):
    sensor: int
    value: float


class Other(msgspec.Struct):
    sensor: int


class Fussy:
    """Codes whole numbers; some it refuses, and some it cannot read."""

    def dumps(self, item: int) -> Any:
        if item == 13:
            raise ValueError("no thirteen")
        return 3.5 if item == 14 else b"%d" % item

    def loads(self, data: bytes) -> int:
        if data == b"7":
            raise KeyError("seven")
        return int(data)


def there_and_back(codec: Any, items: list[Any]) -> list[Any]:
    coder = coder_of(codec, "a->b")
    address = Address(1, 2, 0)
    data = encode(address, 0, 0, 0, coder.dump(items), len(items), coder.number)
    return decode(data, [coder]).items


@pytest.mark.parametrize(
    ("codec", "items"),
    [
        (json, [{"a": [1, "ü"]}, None, "x"]),
        (pickle, [{1, 2}, (3,)]),
        (Fussy(), [1, 2, 3]),
        (msgspec_codec(Reading), [Reading(1, 0.5), Reading(2, 1.5)]),
        (msgspec_codec(dict[str, int]), [{"a": 1}]),
        (json, []),
        (msgspec_codec(Reading), []),
    ],
)
def test_items_come_back(codec: Any, items: list[Any]) -> None:
    assert there_and_back(codec, items) == items
    assert there_and_back(cloudpickle.loads(cloudpickle.dumps(codec)), items) == items


@pytest.mark.parametrize(
    ("codec", "item", "words"),
    [
        (Fussy(), 13, 'codec Fussy of stream "a->b": dumps raised ValueError: no thirteen'),
        (Fussy(), 14, 'codec Fussy of stream "a->b": dumps must return bytes, not float: 3.5'),
        (
            msgspec_codec(Reading),
            Other(1),
            'codec msgspec of Reading of stream "a->b": dumps_many raised TypeError:'
            " it takes Reading, not Other: Other(sensor=1)",
        ),
        (
            msgspec_codec(int),
            socket,
            'codec msgspec of int of stream "a->b": dumps_many raised TypeError:'
            " Encoding objects of type module is unsupported",
        ),
    ],
)
def test_what_cannot_be_coded_is_told(codec: Any, item: Any, words: str) -> None:
    with pytest.raises(CodecError) as caught:
        coder_of(codec, "a->b").dump([item])
    assert str(caught.value) == words


@pytest.mark.parametrize(
    ("codec", "body", "expected", "data", "words"),
    [
        (
            Fussy(),
            coder_of(Fussy(), "a->b").dump([6, 7, 8]),
            [6, None, 8],
            b"7",
            "codec Fussy of stream \"a->b\": loads raised KeyError: 'seven'",
        ),
        (
            msgspec_codec(Reading),
            msgspec.msgpack.encode([Reading(1, 0.5), {"sensor": "x"}, Reading(2, 1.5)]),
            [Reading(1, 0.5), None, Reading(2, 1.5)],
            msgspec.msgpack.encode({"sensor": "x"}),
            'codec msgspec of Reading of stream "a->b": loads raised ValidationError:'
            " Expected `int`, got `str` - at `$.sensor`",
        ),
    ],
)
def test_only_the_item_at_fault_is_not_read(
    codec: Any, body: bytes, expected: list[Any], data: bytes, words: str
) -> None:
    sealed = encode(Address(1, 2, 0), 0, 0, 0, body, 3, OWN)
    envelope = decode(sealed, [coder_of(codec, "a->b")])
    found = envelope.items[1]
    assert envelope.unread
    assert [None if item is found else item for item in envelope.items] == expected
    assert isinstance(found, Unread)
    assert (found.data, str(found.problem)) == (data, words)


batch = pa.record_batch({"value": pa.array([1, 2, 3])})
named = pa.record_batch({"name": pa.array(["a", "b"]), "at": pa.array([1.5, None])})
chunked = pa.Table.from_batches([batch, batch])
coded = pa.record_batch({"word": pa.array(["x", "y", "x"]).dictionary_encode()})
recoded = pa.record_batch({"word": pa.array(["z", "y"]).dictionary_encode()})
described = batch.replace_schema_metadata({"unit": "ms"})


@pytest.mark.parametrize(
    "items",
    [
        [],
        [batch],
        [batch, batch, named, named, batch],
        [chunked, batch, chunked],
        [chunked.slice(0, 0), batch.slice(1, 0), pa.table({})],
        [batch.slice(1), named.slice(1, 1)],
        [coded, recoded],
        [batch, described, batch],
    ],
)
def test_batches_and_tables_come_back_as_they_were(items: list[Any]) -> None:
    found = there_and_back("arrow", items)
    assert [type(item) for item in found] == [type(item) for item in items]
    assert [item.to_pydict() for item in found] == [item.to_pydict() for item in items]
    assert [item.schema.metadata for item in found] == [item.schema.metadata for item in items]


def test_a_schema_is_written_once() -> None:
    alone = len(KNOWN["arrow"].dump([named]))
    assert len(KNOWN["arrow"].dump([named] * 20)) < 20 * alone * 0.7


def test_values_are_read_where_they_were_received_and_stay() -> None:
    """Arrow keeps the bytes of a frame, whatever comes after it; nothing of them is copied."""
    ours, theirs = socket.socketpair()
    with ours, theirs:
        inbox = frames.Inbox(ours)
        coder = KNOWN["arrow"]
        kept: list[Any] = []
        for number in range(3):
            numbers = pa.record_batch({"value": pa.array(range(number, number + 1000))})
            body = coder.dump([numbers])
            sealed = encode(Address(0, 0, 0), 0, 0, 0, body, 1, coder.number)
            theirs.sendall(frames.frame(frames.DATA, sealed))
            while not (got := [*inbox.frames()]):
                inbox.wait(None)
            ((_, data),) = got
            (found,) = decode(data).items
            begin = pa.py_buffer(data).address
            values = found.column("value").buffers()[1].address
            assert begin <= values < begin + len(data)
            kept.append(found)
        assert [found.column("value").to_pylist()[0] for found in kept] == [0, 1, 2]
        assert [found.num_rows for found in kept] == [1000] * 3
