"""Ids of millions of items in little memory.

Of an id only a digest of 16 bytes is kept (BLAKE2b). Two bytes of it choose a bucket, the other 14 are
appended to what the bucket holds, so an id costs 14 bytes and its share of the bucket. Nothing is ever
rearranged: a `set` of the same digests needs five times the memory, and stops for a while whenever it grows.

With n ids there, a new one is taken for one of them with a probability of n / 2^128, and by bytes of two
neighbours in a bucket that happen to read like it with less than n / 2^124. If a batch has ten million ids,
that is one lost item in more than 10^23 batches.
"""

from hashlib import blake2b

import msgspec

ItemId = tuple[int, ...]

DIGEST_BYTES = 16
BUCKETS = 1 << 16


def digest_of(item_id: ItemId) -> bytes:
    """What is remembered of an id."""
    return blake2b(msgspec.json.encode(item_id), digest_size=DIGEST_BYTES).digest()


class IdSet:
    """A set of digests; only `in`, `add` and `len`."""

    __slots__ = ("_buckets", "_count")

    def __init__(self) -> None:
        self._buckets = [b""] * BUCKETS
        self._count = 0

    def __len__(self) -> int:
        return self._count

    def __contains__(self, digest: bytes) -> bool:
        return digest[2:] in self._buckets[digest[0] << 8 | digest[1]]

    def add(self, digest: bytes) -> None:
        """Remember one that is not in it yet."""
        self._buckets[digest[0] << 8 | digest[1]] += digest[2:]
        self._count += 1
