"""Amounts of memory as people write them: "200 MB", "1 GiB", or a number of bytes."""

import math
import re
from typing import Final

Size = str | int

_BYTES_PER_UNIT: Final = {
    "B": 1,
    "kB": 10**3,
    "KiB": 2**10,
    "MB": 10**6,
    "MiB": 2**20,
    "GB": 10**9,
    "GiB": 2**30,
}
_WRITTEN: Final = re.compile(r"\s*(\d+\.?\d*|\.\d+)\s*([A-Za-z]+)\s*", re.ASCII)
_REMEDY: Final = f'write for example "200 MB" ({", ".join(_BYTES_PER_UNIT)}) or a whole number of bytes'


class SizeError(ValueError):
    """Something is not an amount of memory; the message shows it and what would be one."""


def size_bytes(value: object) -> int:
    """The amount in bytes.

    >>> size_bytes("200 MB"), size_bytes("1.5 GiB"), size_bytes(4096)
    (200000000, 1610612736, 4096)
    """
    if isinstance(value, int) and not isinstance(value, bool):
        if value < 0:
            raise SizeError(f"{value!r} is less than nothing; {_REMEDY}")
        return value
    match = _WRITTEN.fullmatch(value) if isinstance(value, str) else None
    if match is None:
        raise SizeError(f"{value!r} is not an amount of memory; {_REMEDY}")
    number, unit = match.groups()
    if unit not in _BYTES_PER_UNIT:
        raise SizeError(f"{value!r} has the unknown unit {unit!r}; use {', '.join(_BYTES_PER_UNIT)}")
    found = float(number) * _BYTES_PER_UNIT[unit]
    if not math.isfinite(found):
        raise SizeError(f"{value!r} is not a finite amount of memory; {_REMEDY}")
    return round(found)


def format_size(amount_bytes: int) -> str:
    """An amount for people: in the largest unit of which it is a whole number.

    >>> format_size(200_000_000), format_size(2**30), format_size(1_500_000_000)
    ('200 MB', '1 GiB', '1500 MB')
    """
    for name, unit in reversed(_BYTES_PER_UNIT.items()):
        if amount_bytes >= unit and amount_bytes % unit == 0:
            return f"{amount_bytes // unit} {name}"
    return "0 B"
