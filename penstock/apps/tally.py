"""What a live view needs of arrivals: the latency of each interval, and what is missing or came twice."""

import math
from dataclasses import dataclass, field

import numpy
from numpy.typing import NDArray

from penstock.testing.arrivals import Entries

GROWTH = 1 << 16


@dataclass(frozen=True, slots=True)
class Interval:
    """What arrived between two looks; latencies are None if nothing did."""

    time_s: float
    offered_per_s: float
    arrived_per_s: float
    mean_ms: float | None
    p95_ms: float | None
    p99_ms: float | None
    replicas: int

    def held(self, bound_ms: float) -> bool | None:
        """Whether the mean latency was within the bound; None if nothing arrived."""
        return None if self.mean_ms is None else self.mean_ms <= bound_ms


@dataclass
class Tally:
    """Counts the arrivals of every item of one source partition by its index."""

    counts: NDArray[numpy.int64] = field(default_factory=lambda: numpy.zeros(GROWTH, numpy.int64))
    arrived: int = 0
    primes: int = 0

    def add(self, entries: Entries) -> None:
        """Take in new arrivals."""
        if not len(entries):
            return
        needed = int(entries.index.max()) + 1
        if needed > len(self.counts):
            room = math.ceil(needed / GROWTH) * GROWTH
            self.counts = numpy.concatenate([self.counts, numpy.zeros(room - len(self.counts), numpy.int64)])
        numpy.add.at(self.counts, entries.index, 1)
        self.arrived += len(entries)
        self.primes += int(entries.mark.sum())

    def missing(self, expected: int) -> int:
        """How many of the first `expected` items have not arrived."""
        beyond = max(0, expected - len(self.counts))
        return beyond + int(numpy.count_nonzero(self.counts[:expected] == 0))

    def duplicated(self) -> int:
        """How many arrivals were not the first of their item."""
        return int(numpy.maximum(self.counts - 1, 0).sum())


def interval(
    entries: Entries, *, time_s: float, span_s: float, offered_per_s: float, replicas: int
) -> Interval:
    """Latency figures of the arrivals of one interval."""
    mean = p95 = p99 = None
    if len(entries):
        latency_ms = entries.latency_ms()
        mean = float(latency_ms.mean())
        p95, p99 = (float(value) for value in numpy.percentile(latency_ms, [95, 99]))
    return Interval(time_s, offered_per_s, len(entries) / span_s, mean, p95, p99, replicas)
