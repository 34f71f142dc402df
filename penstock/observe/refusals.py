"""Somebody should hear of connections that executors closed because of what came over them."""

import time
from collections.abc import Callable, Mapping
from typing import Final

from penstock.wire.reports import Refused

TOLD_EVERY_S: Final = 60.0


class RefusalNotices:
    """The first of an executor is told at once, then all that came since, at most once a minute."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._told: dict[str, tuple[float, int]] = {}

    def of(self, refused: Mapping[str, Refused]) -> list[str]:
        """What is to be told now."""
        now_s, found = self._clock(), []
        for executor, seen in refused.items():
            told_s, count = self._told.get(executor, (-TOLD_EVERY_S, 0))
            if seen.count > count and now_s - told_s >= TOLD_EVERY_S:
                self._told[executor] = (now_s, seen.count)
                found.append(
                    f"executor {executor} has closed {seen.count} connections to its shuffle because of what"
                    f" came over them, the last from {seen.last}"
                )
        return found
