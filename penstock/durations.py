"""Durations as people write them: "20 ms", a timedelta, or a number of seconds."""

import math
import re
from datetime import timedelta
from typing import Final

Duration = str | timedelta | float

_MS_PER_UNIT: Final = {"us": 0.001, "ms": 1.0, "s": 1000.0, "min": 60_000.0, "h": 3_600_000.0}
_WRITTEN: Final = re.compile(r"\s*([+-]?(?:\d+\.?\d*|\.\d+)(?:e[+-]?\d+)?)\s*([^\W\d_]+)\s*", re.IGNORECASE)
_REMEDY: Final = 'write for example "20 ms" (us, ms, s, min or h), a timedelta or a number of seconds'


class DurationError(ValueError):
    """Something is not a duration; the message shows it and what would be one."""


def milliseconds(value: Duration) -> float:
    """The duration in milliseconds; a plain number counts seconds.

    >>> milliseconds("250 us"), milliseconds("1.5 s"), milliseconds(2)
    (0.25, 1500.0, 2000.0)
    """
    if isinstance(value, str):
        found_ms = _parsed_ms(value)
    elif isinstance(value, timedelta):
        found_ms = value / timedelta(milliseconds=1)
    elif isinstance(value, int | float) and not isinstance(value, bool):
        found_ms = _finite(value) * 1000.0
    else:
        raise DurationError(f"{value!r} is not a duration; {_REMEDY}")
    if not math.isfinite(found_ms):
        raise DurationError(f"{value!r} is not a finite duration; {_REMEDY}")
    if found_ms < 0:
        raise DurationError(f"{value!r} is a negative duration; it must be 0 or more")
    return found_ms


def seconds(value: Duration) -> float:
    """The duration in seconds; a plain number counts seconds."""
    return milliseconds(value) / 1000.0


def format_ms(value_ms: float) -> str:
    """A duration for people, in the largest unit that does not make it smaller than 1.

    >>> format_ms(0.25), format_ms(20), format_ms(90_000)
    ('250 us', '20 ms', '1.5 min')
    """
    chosen = "us"
    for unit, unit_ms in _MS_PER_UNIT.items():
        if abs(value_ms) >= unit_ms:
            chosen = unit
    if value_ms == 0:
        chosen = "ms"
    # Six significant digits are more than any latency deserves and never show binary rounding.
    return f"{value_ms / _MS_PER_UNIT[chosen]:.6g} {chosen}"


def _parsed_ms(text: str) -> float:
    match = _WRITTEN.fullmatch(text)
    if match is None:
        raise DurationError(f"{text!r} is not a duration; {_REMEDY}")
    number, unit = match.groups()
    if unit not in _MS_PER_UNIT:
        raise DurationError(f"{text!r} has the unknown unit {unit!r}; use us, ms, s, min or h")
    return float(number) * _MS_PER_UNIT[unit]


def _finite(value: float) -> float:
    """An int too large for a float counts as infinite, like a float that has overflowed."""
    try:
        return float(value)
    except OverflowError:
        return math.inf
