"""Arrow record batches and tables as the body of an envelope, read in place: no value of theirs is copied.

For each run of items with one schema:
u32 items, for each of them u32 batches (BARE: it is a record batch itself)
u32 length, IPC stream of all their batches, in which the schema stands once

What is read refers to the bytes it was read from, and keeps them alive.
"""

from collections.abc import Iterator
from itertools import groupby
from struct import Struct
from typing import Any

BARE = 0xFFFFFFFF
_NUMBER = Struct("<I")


def dump_arrow(items: list[Any]) -> bytes:
    """The body of an envelope; `TypeError` for an item that is neither."""
    import pyarrow as pa

    for item in items:
        if not isinstance(item, pa.RecordBatch | pa.Table):
            raise TypeError(
                f"a stream coded as arrow got {type(item).__name__}; give it record batches or tables"
            )
    parts: list[Any] = []
    for run in _runs(items):
        batches = [[item] if isinstance(item, pa.RecordBatch) else item.to_batches() for item in run]
        counts = [
            BARE if isinstance(item, pa.RecordBatch) else len(own)
            for item, own in zip(run, batches, strict=True)
        ]
        sink = pa.BufferOutputStream()
        with pa.ipc.new_stream(sink, run[0].schema) as writer:
            for own in batches:
                for batch in own:
                    writer.write_batch(batch)
        stream = sink.getvalue()
        parts += [_NUMBER.pack(number) for number in (len(run), *counts, stream.size)]
        parts.append(stream)
    return b"".join(parts)


def load_arrow(block: memoryview) -> list[Any]:
    """The record batches and tables of a body."""
    import pyarrow as pa

    items: list[Any] = []
    whole = pa.py_buffer(block)
    at = 0
    while at < len(block):
        (count,) = _NUMBER.unpack_from(block, at)
        counts, at = _numbers(block, at + 4, count), at + 4 + 4 * count
        (length,) = _NUMBER.unpack_from(block, at)
        at += 4
        if len(block) < at + length:
            raise ValueError("cut off")
        reader = pa.ipc.open_stream(pa.BufferReader(whole.slice(at, length)))
        at += length
        for batches in counts:
            if batches == BARE:
                items.append(reader.read_next_batch())
            else:
                own = [reader.read_next_batch() for _ in range(batches)]
                items.append(pa.Table.from_batches(own, reader.schema))
    return items


def _runs(items: list[Any]) -> Iterator[list[Any]]:
    """Items that stand behind each other and have one schema, with its metadata."""
    last: Any = None

    def schema(item: Any) -> int:
        nonlocal last
        if last is None or not item.schema.equals(last, check_metadata=True):
            last = item.schema
        return id(last)

    return (list(run) for _, run in groupby(items, schema))


def _numbers(block: memoryview, at: int, count: int) -> list[int]:
    if len(block) < at + 4 * count:
        raise ValueError("cut off")
    return [number for (number,) in _NUMBER.iter_unpack(block[at : at + 4 * count])]
