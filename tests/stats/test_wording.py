"""Complaints in plain words."""

from typing import Annotated, Literal

import msgspec
import pytest
from msgspec import Meta

from penstock.stats.wording import complaint


class Example(msgspec.Struct):
    speed: Annotated[Literal["slow", "fast"], Meta(description="how fast")] = "slow"
    kind: Literal["a", "b", "c"] | None = None


@pytest.mark.parametrize(
    ("problem", "field", "expected"),
    [
        ("Expected `float`, got `str`", "x", "expected a number"),
        ("Expected `int | null` >= 1", "x", "expected a whole number or null >= 1"),
        ("Expected `array` of length 2", "x", "expected a list of length 2"),
        ("Expected `datetime`, got `int`", "x", "expected datetime"),
        ("Invalid enum value 'x'", "speed", "expected 'slow' or 'fast'"),
        ("Invalid enum value 'x'", "kind", "expected 'a', 'b' or 'c'"),
        ("Number out of range", "x", "number out of range"),
    ],
)
def test_what_would_be_right(problem: str, field: str, expected: str) -> None:
    assert complaint(problem, Example, field) == expected
