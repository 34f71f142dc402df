"""What a live view needs of arrivals: the latency of each second's items, what is missing or came twice."""

from dataclasses import dataclass, field

import numpy
from numpy.typing import NDArray

from penstock.testing.arrivals import Entries

NS_PER_S = 1_000_000_000
OVERDUE_S = 5.0


@dataclass(frozen=True, slots=True)
class Second:
    """The items that were due in one second of the run; latencies are None if none of them has arrived."""

    number: int
    offered_per_s: float
    mean_ms: float | None
    p95_ms: float | None
    p99_ms: float | None

    def held(self, bound_ms: float) -> bool | None:
        """Whether the mean latency was within the bound; None if nothing arrived."""
        return None if self.mean_ms is None else self.mean_ms <= bound_ms


@dataclass
class Tally:
    """Arrivals from one source partition: latencies by the second in which items were due, and who came."""

    zero_ns: int | None = None
    _latency_ms: dict[int, list[NDArray[numpy.float64]]] = field(default_factory=dict)
    _indexes: list[NDArray[numpy.int64]] = field(default_factory=list)

    def add(self, entries: Entries) -> None:
        """Take in new arrivals; the first of them says when the run began."""
        if not len(entries):
            return
        if self.zero_ns is None:
            self.zero_ns = int(entries.due_ns.min())
        self._indexes.append(entries.index)
        due_s = (entries.due_ns - self.zero_ns) // NS_PER_S
        latency_ms = entries.latency_ms()
        for number in numpy.unique(due_s):
            self._latency_ms.setdefault(int(number), []).append(latency_ms[due_s == number])

    def second(self, number: int, offered_per_s: float) -> Second:
        """The items due in that second, as far as they have arrived."""
        if number not in self._latency_ms:
            return Second(number, offered_per_s, None, None, None)
        latency_ms = numpy.concatenate(self._latency_ms[number])
        p95, p99 = (float(value) for value in numpy.percentile(latency_ms, [95, 99]))
        return Second(number, offered_per_s, float(latency_ms.mean()), p95, p99)

    def missing(self, expected: int) -> int:
        """How many of the first `expected` items have not arrived."""
        arrived = self._arrived()
        return expected - int(numpy.count_nonzero(numpy.unique(arrived) < expected))

    def duplicated(self) -> int:
        """How many arrivals were not the first of their item."""
        arrived = self._arrived()
        return len(arrived) - len(numpy.unique(arrived))

    def _arrived(self) -> NDArray[numpy.int64]:
        return numpy.concatenate([numpy.empty(0, numpy.int64), *self._indexes])
