"""How long a source that batches sleeps between two reads: what comes meanwhile would wait anyway.

The time that an item waits for its read counts as time in its envelope, if the source says when it was due;
otherwise that time would be lost to the statistics, and the pauses are short.
"""

_READS_PER_LIFETIME = 4
_BLIND_READS_PER_LIFETIME = 20
_LONGEST_S = 0.005


def pause_s(lifetime_s: float, *, knows_due: bool = True) -> float:
    """The pause for a batch lifetime.

    >>> pause_s(0.008), pause_s(0.008, knows_due=False), pause_s(1.0)
    (0.002, 0.0004, 0.005)
    """
    reads = _READS_PER_LIFETIME if knows_due else _BLIND_READS_PER_LIFETIME
    return min(_LONGEST_S, lifetime_s / reads)
