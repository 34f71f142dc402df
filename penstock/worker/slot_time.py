"""The useful time of a replica whose items are answered by calls that run at the same time.

With concurrency c a replica is at its limit when c calls are open, so each of them takes a c-th of it:

    useful = integral of (open calls / c) over time

Then useful time over time is its utilisation, and items over useful time is c / s for calls of s seconds: its
capacity (DS2's true rate), however few calls there are. Its thread has a limit too, the time there is: where
that is the closer one, its own useful time is the longer one and counts.
"""


class SlotTime:
    """Counts open calls and those that are done; any thread may read it."""

    __slots__ = ("_concurrency", "_state", "done", "open")

    def __init__(self, concurrency: int) -> None:
        self.open = 0
        self.done = 0
        self._concurrency = concurrency
        # Total, how many are open, since when; one value, so that nobody sees half of a change.
        self._state = (0, 0, 0)

    def opened(self, now_ns: int) -> None:
        """A call begins."""
        self.open += 1
        self._state = (self._total_ns(now_ns), self.open, now_ns)

    def closed(self, now_ns: int) -> None:
        """A call is over, and what came of it is sent."""
        self.open -= 1
        self.done += 1
        self._state = (self._total_ns(now_ns), self.open, now_ns)

    def useful_ns(self, now_ns: int) -> int:
        """Up to that time."""
        return self._total_ns(now_ns) // self._concurrency

    def _total_ns(self, now_ns: int) -> int:
        total_ns, count, since_ns = self._state
        return total_ns + count * max(0, now_ns - since_ns)
