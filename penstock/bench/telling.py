"""How far a bench is, on the standard error: a full one takes minutes, some of them an hour."""

import sys
import time
from collections.abc import Callable, Collection, Iterator
from typing import TypeVar

_BEGAN_S = time.monotonic()
T = TypeVar("T")


def tell(what: str) -> None:
    """A line, with the time since the beginning."""
    print(f"{time.monotonic() - _BEGAN_S:5.0f} s  {what}", file=sys.stderr, flush=True)


def told(of: Collection[T], name: Callable[[T], str] = str) -> Iterator[T]:
    """One after the other, each told as it begins."""
    for number, one in enumerate(of, 1):
        tell(f"{name(one)}, {number} of {len(of)}")
        yield one


def turns(count: int) -> Iterator[int]:
    """Their numbers, each told as it begins."""
    for number in range(count):
        tell(f"turn {number + 1} of {count}")
        yield number
