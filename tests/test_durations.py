"""Durations: what is accepted, what is refused and with which words."""

import math
from datetime import timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.durations import Duration, DurationError, format_ms, milliseconds, seconds

UNITS_MS = {"us": 0.001, "ms": 1.0, "s": 1000.0, "min": 60_000.0, "h": 3_600_000.0}


@pytest.mark.parametrize(
    ("written", "expected_ms"),
    [
        ("20 ms", 20.0),
        ("1.5 s", 1500.0),
        ("2 min", 120_000.0),
        ("1 h", 3_600_000.0),
        ("250 us", 0.25),
        ("20ms", 20.0),
        ("  .5 s ", 500.0),
        ("1e3 ms", 1000.0),
        ("0 ms", 0.0),
        (timedelta(milliseconds=20), 20.0),
        (timedelta(microseconds=1), 0.001),
        (0.02, 20.0),
        (2, 2000.0),
        (0, 0.0),
    ],
)
def test_accepted(written: Duration, expected_ms: float) -> None:
    assert milliseconds(written) == pytest.approx(expected_ms)
    assert seconds(written) == pytest.approx(expected_ms / 1000)


REMEDY = 'write for example "20 ms" (us, ms, s, min or h), a timedelta or a number of seconds'


@pytest.mark.parametrize(
    ("written", "message"),
    [
        ("", f"'' is not a duration; {REMEDY}"),
        ("20", f"'20' is not a duration; {REMEDY}"),
        ("fast", f"'fast' is not a duration; {REMEDY}"),
        ("1 s 2 ms", f"'1 s 2 ms' is not a duration; {REMEDY}"),
        ("nan ms", f"'nan ms' is not a duration; {REMEDY}"),
        ("3 days", "'3 days' has the unknown unit 'days'; use us, ms, s, min or h"),
        ("3 MS", "'3 MS' has the unknown unit 'MS'; use us, ms, s, min or h"),
        ("-1 ms", "'-1 ms' is a negative duration; it must be 0 or more"),
        (-1, "-1 is a negative duration; it must be 0 or more"),
        (timedelta(seconds=-1), f"{timedelta(seconds=-1)!r} is a negative duration; it must be 0 or more"),
        (math.nan, f"nan is not a finite duration; {REMEDY}"),
        (math.inf, f"inf is not a finite duration; {REMEDY}"),
        ("1e999 s", f"'1e999 s' is not a finite duration; {REMEDY}"),
        (True, f"True is not a duration; {REMEDY}"),
        (None, f"None is not a duration; {REMEDY}"),
        (b"20 ms", f"b'20 ms' is not a duration; {REMEDY}"),
    ],
)
def test_refused(written: object, message: str) -> None:
    with pytest.raises(DurationError) as refused:
        milliseconds(written)  # type: ignore[arg-type]
    assert str(refused.value) == message
    with pytest.raises(DurationError):
        seconds(written)  # type: ignore[arg-type]


def test_an_int_beyond_float_is_refused() -> None:
    with pytest.raises(DurationError, match="is not a finite duration"):
        milliseconds(10**400)


@pytest.mark.parametrize(
    ("value_ms", "shown"),
    [
        (0.0, "0 ms"),
        (0.25, "250 us"),
        (20.0, "20 ms"),
        (1500.0, "1.5 s"),
        (90_000.0, "1.5 min"),
        (7.2e6, "2 h"),
    ],
)
def test_formatted(value_ms: float, shown: str) -> None:
    assert format_ms(value_ms) == shown


@given(st.floats(0, 1e9, allow_subnormal=False), st.sampled_from(sorted(UNITS_MS)))
def test_units_scale(number: float, unit: str) -> None:
    assert milliseconds(f"{number!r} {unit}") == pytest.approx(number * UNITS_MS[unit])


@given(st.floats(0, 1e12))
def test_what_is_formatted_can_be_read_back(value_ms: float) -> None:
    assert milliseconds(format_ms(value_ms)) == pytest.approx(value_ms, rel=1e-5)


@given(st.text())
def test_any_text_is_a_duration_or_refused_as_one(text: str) -> None:
    try:
        found_ms = milliseconds(text)
    except DurationError:
        return
    assert 0 <= found_ms < math.inf
