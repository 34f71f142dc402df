"""The time between two items that arrive at a replica's queue, whichever stream they came by (appendix A)."""

from penstock.stats.moments import NS_PER_MS, Moments, OnlineMoments


class Arrivals:
    """Inter-arrival times in ms.

    Items of one envelope arrive together: the first carries the gap since the last envelope, the others none
    (as in the public code of Nephele). That is what makes batched arrivals bursty for the latency model.
    """

    __slots__ = ("_gaps_ms", "_last_ns")

    def __init__(self) -> None:
        self._gaps_ms = OnlineMoments()
        self._last_ns: int | None = None

    def arrived(self, now_ns: int, items: int = 1) -> None:
        """An envelope with `items` items came in."""
        if self._last_ns is not None:
            self._gaps_ms.add(max(0, now_ns - self._last_ns) / NS_PER_MS)
        if items > 1:
            self._gaps_ms.add_all(Moments(items - 1, 0.0, 0.0))
        self._last_ns = now_ns

    def take(self) -> Moments:
        """The interval's gaps, in ms; the next gap begins at the last arrival of this one."""
        return self._gaps_ms.take()
