"""A clock that stands still until there is nothing left to do, and then jumps to what comes next."""

import heapq
import itertools
from collections.abc import Callable
from enum import IntEnum

Action = Callable[[], None]


class Turn(IntEnum):
    """Who comes first when several things are due at the same time."""

    SHIP = 0
    READ = 1
    TIMER = 2
    COMMIT = 3


class VirtualClock:
    """Begins at 0. What is due at the same time and in the same turn happens in the order it was asked for.

    >>> clock, seen = VirtualClock(), []
    >>> clock.at(20, Turn.TIMER, lambda: seen.append(("timer", clock.now_ns())))
    >>> clock.at(20, Turn.READ, lambda: seen.append(("read", clock.now_ns())))
    >>> clock.advance(), clock.advance(until_ns=100), clock.advance(), seen
    (True, True, False, [('read', 20), ('timer', 20)])
    """

    def __init__(self) -> None:
        self._now_ns = 0
        self._until_ns: int | None = None
        self._waiting: list[tuple[int, Turn, int, Action]] = []
        self._numbers = itertools.count()

    def now_ns(self) -> int:
        """The time, in the place of `time.monotonic_ns`."""
        return self._now_ns

    def at(self, when_ns: int, turn: Turn, action: Action) -> None:
        """Do this at that time; at once if it has passed."""
        heapq.heappush(self._waiting, (when_ns, turn, next(self._numbers), action))

    def advance(self, until_ns: int | None = None) -> bool:
        """Jump to the next thing and do it; False if there is none, or none up to `until_ns`."""
        self._until_ns = until_ns
        if not self._waiting or (until_ns is not None and self._waiting[0][0] > until_ns):
            return False
        when_ns, _, _, action = heapq.heappop(self._waiting)
        self.jump(when_ns)
        action()
        return True

    def wait(self, when_ns: int) -> bool:
        """Let the time pass for whoever has the turn; False if something else comes before that."""
        if self._waiting and self._waiting[0][0] <= when_ns:
            return False
        if self._until_ns is not None and when_ns > self._until_ns:
            return False
        self.jump(when_ns)
        return True

    def jump(self, when_ns: int) -> None:
        """Let the time pass, never backwards."""
        self._now_ns = max(self._now_ns, when_ns)
