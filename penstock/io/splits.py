"""Splits of sources that deal their items round: part 0 of 3 holds other items than part 0 of 2."""


def numbered_splits(count: int) -> tuple[str, ...]:
    """The names of that many parts.

    >>> numbered_splits(2)
    ('0/2', '1/2')
    """
    return tuple(f"{number}/{count}" for number in range(count))


def split_number(split: str) -> int:
    """Which part it is, from 0."""
    return int(split.partition("/")[0])
