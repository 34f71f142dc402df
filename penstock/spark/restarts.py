"""When a flow that Spark or the machine ended is started again: at once, then later and later, not for ever.

wait before restart n within the window = min(longest, first * 2^(n - 2)), none before the first
"""

from collections import deque
from collections.abc import Callable
from dataclasses import dataclass

from penstock.flow.errors import FlowError

MOST = 10
WITHIN_S = 600.0
_FIRST_WAIT_S = 0.5
_LONGEST_WAIT_S = 30.0


@dataclass(frozen=True, slots=True)
class Outage:
    """A time in which the flow did not run, and why; `replayed` items came after the last commit."""

    why: str
    began_s: float
    ended_s: float
    replayed: int


class Restarts:
    """Counts the restarts of a flow; at most `most` within ten minutes."""

    def __init__(self, most: int, clock: Callable[[], float]) -> None:
        if most < 0:
            raise FlowError(f"restarts={most} is not a number of restarts; give 0 or more")
        self._most = most
        self._clock = clock
        self._recent: deque[float] = deque()
        self.outages: deque[Outage] = deque(maxlen=1000)
        self.count = 0
        self.down_s = 0.0
        self.replayed = 0

    def wait_s(self) -> float | None:
        """How long to wait before the next restart; None if there have been too many."""
        now_s = self._clock()
        while self._recent and now_s - self._recent[0] > WITHIN_S:
            self._recent.popleft()
        if len(self._recent) >= self._most:
            return None
        if not self._recent:
            return 0.0
        return float(min(_LONGEST_WAIT_S, _FIRST_WAIT_S * 2 ** (len(self._recent) - 1)))

    def tried(self) -> None:
        """The flow is being started again."""
        self._recent.append(self._clock())

    def over(self, outage: Outage) -> None:
        """The flow runs again."""
        self.count += 1
        self.down_s += outage.ended_s - outage.began_s
        self.replayed += outage.replayed
        self.outages.append(outage)

    def too_many(self) -> str:
        """Why it is not started again."""
        return f"it was started again {len(self._recent)} times within {WITHIN_S / 60:g} min, and is given up"
