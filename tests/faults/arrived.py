"""What arrived in trials that are made up."""

from collections.abc import Iterable

from penstock.testing.arrivals import Entries
from tests.testing.entries import entries

MS = 1_000_000
PER_S = 100


def arrived(
    seconds: float, latency_ms: float = 5.0, late: tuple[float, float] | None = None, late_ms: float = 1000.0
) -> Entries:
    """100 items/s of one partition; those due in a span of time come later."""
    rows = []
    for index in range(round(seconds * PER_S)):
        due_s = index / PER_S
        is_late = late is not None and late[0] <= due_s < late[1]
        rows.append((index, round(due_s * 1e9), late_ms if is_late else latency_ms))
    return entries((0, index, due_ns, due_ns + round(ms * MS), 0) for index, due_ns, ms in rows)


def of(indexes: Iterable[int]) -> Entries:
    """Items of one partition and one way, in the order of their arrival."""
    return entries((0, index, 0, 0, 0) for index in indexes)
