"""Amounts of memory: what is understood, and what is refused in words."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.sizes import SizeError, format_size, size_bytes


@pytest.mark.parametrize(
    ("written", "expected"),
    [
        ("200 MB", 200_000_000),
        ("1GB", 10**9),
        (" 1.5 GiB ", 3 << 29),
        ("64 KiB", 1 << 16),
        (7, 7),
        ("3 B", 3),
    ],
)
def test_understood(written: object, expected: int) -> None:
    assert size_bytes(written) == expected


@pytest.mark.parametrize(
    ("nonsense", "words"),
    [
        ("much", "'much' is not an amount of memory; write for example \"200 MB\" (B, kB, "),
        ("-5 MB", "'-5 MB' is not an amount of memory"),
        (True, "True is not an amount of memory"),
        (2.5, "2.5 is not an amount of memory"),
        (-1, "-1 is less than nothing"),
        ("5 TB", "'5 TB' has the unknown unit 'TB'; use B, kB, KiB, MB, MiB, GB, GiB"),
        ("9" * 400 + " GB", "is not a finite amount of memory"),
    ],
)
def test_refused(nonsense: object, words: str) -> None:
    with pytest.raises(SizeError) as caught:
        size_bytes(nonsense)
    assert words in str(caught.value)


@given(st.integers(0, 1 << 50))
def test_what_is_shown_is_understood(amount: int) -> None:
    assert size_bytes(format_size(amount)) == amount
