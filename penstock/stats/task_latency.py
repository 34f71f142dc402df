"""How long an item stays in a task, measured in the two ways of the thesis (section 4.1).

Read-ready: from reading an item until the task is ready for the next one; for tasks that work item by item.
It is also the service time (appendix A), and needs nothing but a subtraction.

Read-write: from reading an item until the next write to an output; for tasks that gather, where an item waits
for the ones after it. All times are given by the caller, in nanoseconds of one clock.
"""

from penstock.stats.moments import NS_PER_MS, Moments, OnlineMoments


class ReadWrite:
    """Read-write latency of sampled items, in ms.

    Any number of items may wait for the next write. Their latencies are w - r_i for read times r_i, so the
    mean of the r_i and their spread are all that must be kept.
    """

    __slots__ = ("_first_ns", "_latency_ms", "_waiting_ms")

    def __init__(self) -> None:
        self._latency_ms = OnlineMoments()
        self._waiting_ms = OnlineMoments()
        self._first_ns: int | None = None

    def read(self, now_ns: int) -> None:
        """The task takes a sampled item from its queue."""
        if self._first_ns is None:
            self._first_ns = now_ns
        self._waiting_ms.add((now_ns - self._first_ns) / NS_PER_MS)

    def written(self, now_ns: int) -> None:
        """The task sends something to this output."""
        if self._first_ns is None:
            return
        read = self._waiting_ms.take()
        mean_ms = (now_ns - self._first_ns) / NS_PER_MS - read.center
        self._latency_ms.add_all(Moments(read.count, max(0.0, mean_ms), read.squares))
        self._first_ns = None

    def take(self) -> Moments:
        """The interval's finished samples, in ms; items that still wait count when they are written."""
        return self._latency_ms.take()
