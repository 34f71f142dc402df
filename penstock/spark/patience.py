"""How long it is worth to wait for a flow: for ever, until `stop()` has no more time, or not at all."""

import math
import threading
import time


class Patience:
    """One thread waits for a flow to run again, others say how long that is worth waiting for."""

    def __init__(self) -> None:
        self._ends_s = math.inf
        self._shorter = threading.Condition()

    def end_in(self, seconds: float) -> None:
        """It ends then, unless it ends earlier already."""
        with self._shorter:
            self._ends_s = min(self._ends_s, time.monotonic() + seconds)
            self._shorter.notify_all()

    def wait(self, seconds: float) -> bool:
        """Wait for so long; False as soon as patience is at its end."""
        until_s = time.monotonic() + seconds
        with self._shorter:
            while (now_s := time.monotonic()) < self._ends_s and now_s < until_s:
                self._shorter.wait(min(until_s, self._ends_s) - now_s)
            return time.monotonic() < self._ends_s
