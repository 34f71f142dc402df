"""How well a flow follows what is due from its sources (adaptive Storm, section IV-C).

throughput degradation    |input - output| / input        0: it follows; near 1: it cannot
processed events          output / input
"""

from collections.abc import Iterable, Sequence

DueAndArrived = tuple[float, float]
"""Items due, and items that arrived, in an interval."""


def throughput_degradation(intervals: Iterable[DueAndArrived]) -> float | None:
    """Of a run. Intervals count by their input: one in which next to nothing is due says little."""
    known = [(due, arrived) for due, arrived in intervals if due > 0.0]
    total = sum(due for due, _ in known)
    return sum(abs(due - arrived) for due, arrived in known) / total if known else None


def processed_share(intervals: Sequence[DueAndArrived]) -> float | None:
    """Of a run."""
    due = sum(due for due, _ in intervals)
    return sum(arrived for _, arrived in intervals) / due if due else None
