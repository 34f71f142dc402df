"""The reference loop: always the same work, so that the time it takes speaks of the machine alone."""

import time
from collections.abc import Callable

STEPS = 1_400_000  # about a tenth of a second
LOOPS = 3
FIRST_READINGS = 3
# On a quiet machine readings differ by some 3 %, and a neighbour or a slower clock makes it 15 % and more.
SLOWER_AT_MOST = 0.10


def loop_s() -> float:
    """One loop."""
    begin = time.perf_counter()
    total = 0
    for step in range(STEPS):
        total = (total * 31 + step) % 1_000_003
    return time.perf_counter() - begin


class Reference:
    """Readings of the loop, against the best of all so far."""

    def __init__(self, loop: Callable[[], float] = loop_s) -> None:
        self._loop = loop
        self.best_s = min(self._fastest_s() for _ in range(FIRST_READINGS))

    def slower(self) -> float:
        """How much slower than its best the loop is now: 0.1 is a tenth.

        The fastest of a few loops counts: what delays a single one is over before a turn could feel it.
        """
        now_s = self._fastest_s()
        self.best_s = min(self.best_s, now_s)
        return now_s / self.best_s - 1

    def _fastest_s(self) -> float:
        return min(self._loop() for _ in range(LOOPS))
