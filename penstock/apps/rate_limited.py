"""Work that takes a fixed time without using the processor: many replicas fit on few cores.

Dhalion's and DS2's word count limits its stages in this way, and so do we wherever scaling is to be seen on a
small machine.
"""

import time
from collections.abc import Callable
from typing import Generic, TypeVar

Item = TypeVar("Item")
Made = TypeVar("Made")

# A process that was held up for longer does not make up for all of it at once.
LONGEST_DEBT_S = 0.01


class RateLimit:
    """Stretches the work on every item to 1 / `items_per_s`; None leaves it as it is.

    A sleep ends late by some tens of microseconds. What an item took too long is taken off those after it,
        pause = 1 / rate - work - debt,    debt = what the items before took beyond their time,
    so that the mean is exact at every load, busy or idle.
    """

    def __init__(
        self,
        items_per_s: float | None,
        clock: Callable[[], float] = time.monotonic,
        sleep: Callable[[float], None] = time.sleep,
    ) -> None:
        if items_per_s is not None and not items_per_s > 0:
            raise ValueError(f"a rate limit must be above 0 items/s, not {items_per_s!r}")
        self._interval_s = None if items_per_s is None else 1 / items_per_s
        self._clock = clock
        self._sleep = sleep
        self._debt_s = 0.0

    def begin(self) -> float:
        """The time at which the work on an item begins, for `end`."""
        return self._clock()

    def end(self, begun_s: float) -> None:
        """Sleep until the item has taken its time."""
        if self._interval_s is None:
            return
        wanted_s = self._interval_s - self._debt_s
        left_s = begun_s + wanted_s - self._clock()
        if left_s > 0:
            self._sleep(left_s)
        self._debt_s = min(LONGEST_DEBT_S, self._clock() - begun_s - wanted_s)


class RateLimited(Generic[Item, Made]):
    """A function of an item, limited to so many items a second in each replica."""

    def __init__(self, function: Callable[[Item], Made], items_per_s: float | None) -> None:
        self._function = function
        self._limit = RateLimit(items_per_s)

    def __call__(self, item: Item) -> Made:
        begun_s = self._limit.begin()
        result = self._function(item)
        self._limit.end(begun_s)
        return result
