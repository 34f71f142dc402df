"""Which replica owns a key: the same answer in every process, on every host, in every run."""

from collections.abc import Hashable
from zlib import crc32

KEY_GROUPS = 4096
"""Keys are hashed to groups, and groups are dealt to replicas in ranges."""


def key_group(key: Hashable) -> int:
    """The group of a key. Keys that compare equal (1 and 1.0) share a group."""
    if type(key) is str:
        try:
            return crc32(key.encode()) % KEY_GROUPS  # the same, for the keys of most flows
        except UnicodeEncodeError:
            pass
    return _digest(key) % KEY_GROUPS


def owner(group: int, replicas: int) -> int:
    """floor(group * replicas / groups), the range partitioning of key groups."""
    return group * replicas // KEY_GROUPS


def _digest(key: Hashable) -> int:
    if isinstance(key, str):
        return crc32(key.encode("utf-8", "surrogatepass"))
    if isinstance(key, bytes):
        return crc32(key)
    if isinstance(key, int | float):
        if key != key:
            return 0  # not a number: its hash is that of the object, and it still needs one owner
        # hash() of numbers is the same in every process, unlike that of strings.
        return crc32(hash(key).to_bytes(9, "little", signed=True))
    if key is None:
        return 0
    if isinstance(key, tuple):
        digest = len(key)
        for part in key:
            digest = crc32(_digest(part).to_bytes(4, "little"), digest)
        return digest
    raise TypeError(
        f"a key of type {type(key).__name__} has no stable hash;"
        " use str, bytes, a number, None or a tuple of these"
    )
