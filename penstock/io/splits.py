"""Splits of sources: which replica reads which of them, and the names of parts that items are dealt to."""

from collections.abc import Sequence


def dealt(splits: Sequence[str], replicas: int) -> list[list[str]]:
    """The splits of each replica: round, so that one that is added at the end moves no other.

    >>> dealt(["a", "b", "c"], 2)
    [['a', 'c'], ['b']]
    """
    return [list(splits[replica::replicas]) for replica in range(replicas)]


def numbered_splits(count: int) -> tuple[str, ...]:
    """The names of that many parts, round which items are dealt: part 0 of 3 holds others than part 0 of 2.

    >>> numbered_splits(2)
    ('0/2', '1/2')
    """
    return tuple(f"{number}/{count}" for number in range(count))


def split_number(split: str) -> int:
    """Which part it is, from 0."""
    return int(split.partition("/")[0])
