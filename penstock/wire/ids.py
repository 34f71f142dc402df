"""Deterministic ids of items: the same in a replay, whatever order sources and streams were declared in.

An id is a tuple of whole numbers: the origin (source and split), the ordinal of the source's item in it, then
for each hop the stream and the number among what the item before sent into it, and for a broadcast the
replica that gets the copy. Names become numbers by their digests, so that ids stay small.
"""

from collections.abc import Iterable
from hashlib import blake2b
from zlib import crc32

from penstock.flow.errors import FlowError

ItemId = tuple[int, ...]

_ORIGIN_BYTES = 6


def origin_of(source: str, split: str) -> int:
    """The first number of ids: 48 bits that stand for a source's split."""
    return int.from_bytes(blake2b(f"{source}\0{split}".encode(), digest_size=_ORIGIN_BYTES).digest(), "big")


def stream_code(stream: str) -> int:
    """What a stream adds to the numbers of its items: 32 bits above them that stand for its name."""
    return crc32(stream.encode()) << 32


def check_distinct(origins: Iterable[tuple[str, str]], streams: Iterable[str]) -> None:
    """Refuse names that happen to have one digest: their items could not be told apart."""
    seen: dict[tuple[str, int], str] = {}
    named = [
        (("source", origin_of(*origin)), f'split "{origin[1]}" of source "{origin[0]}"') for origin in origins
    ]
    named += [(("stream", stream_code(stream)), f'stream "{stream}"') for stream in streams]
    for digest, name in named:
        other = seen.setdefault(digest, name)
        if other != name:
            raise FlowError(f"the ids of {other} and {name} cannot be told apart; rename one of them")
