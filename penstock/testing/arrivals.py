"""Reads a ledger: what was lost, duplicated or reordered, and how late everything was."""

from dataclasses import dataclass, field
from pathlib import Path

import numpy
from numpy.typing import NDArray

from penstock.testing.ledger import RECORD, Ledger


@dataclass(frozen=True, slots=True)
class Entries:
    """What arrived, in the order of arrival at each replica of the sink."""

    partition: NDArray[numpy.int64]
    index: NDArray[numpy.int64]
    due_ns: NDArray[numpy.int64]
    arrived_ns: NDArray[numpy.int64]
    mark: NDArray[numpy.int64]

    def __len__(self) -> int:
        return len(self.index)

    def latency_ms(self) -> NDArray[numpy.float64]:
        """How long after its due time each item arrived."""
        return (self.arrived_ns - self.due_ns).astype(numpy.float64) * 1e-6

    def where(self, chosen: NDArray[numpy.bool_]) -> "Entries":
        """The entries for which `chosen` is true."""
        columns = (self.partition, self.index, self.due_ns, self.arrived_ns, self.mark)
        return Entries(*(column[chosen] for column in columns))

    def due_between(self, begin_ns: int, end_ns: int) -> "Entries":
        """The entries whose due time lies in [begin, end)."""
        return self.where((self.due_ns >= begin_ns) & (self.due_ns < end_ns))

    def duplicated(self) -> int:
        """How many arrivals were not the first of their item."""
        keys = numpy.stack([self.partition, self.index], axis=1)
        return len(keys) - len(numpy.unique(keys, axis=0)) if len(keys) else 0

    def lost(self, expected: dict[int, int] | None = None) -> int:
        """How many items never arrived, of those before the last arrival or before the `expected` count."""
        missing = 0
        for partition in sorted(set(self.partition.tolist()) | set(expected or ())):
            arrived = numpy.unique(self.index[self.partition == partition])
            known = int(arrived[-1]) + 1 if len(arrived) else 0
            missing += max(known, (expected or {}).get(partition, 0)) - len(arrived)
        return missing

    def reordered(self) -> int:
        """How many items arrived after a later one of the same source partition."""
        return self._reordered(numpy.zeros_like(self.mark))

    def reordered_by_mark(self) -> int:
        """The same, where items of different marks (replicas on the way, say) may overtake each other."""
        return self._reordered(self.mark)

    def _reordered(self, way: NDArray[numpy.int64]) -> int:
        late = 0
        for partition, through in numpy.unique(numpy.stack([self.partition, way], axis=1), axis=0):
            channel = self.index[(self.partition == partition) & (way == through)]
            late += int(numpy.count_nonzero(numpy.diff(channel) < 0))
        return late


@dataclass
class Arrivals:
    """A place in each file of a ledger: `new()` reads on from there, so a live view reads nothing twice."""

    ledger: Ledger
    _read: dict[Path, int] = field(init=False, default_factory=dict)

    def new(self) -> Entries:
        """What arrived since the last call; everything at the first."""
        content = b""
        for path in self.ledger.files():
            with path.open("rb") as file:
                file.seek(self._read.get(path, 0))
                part = file.read()
            whole = part[: len(part) // RECORD.size * RECORD.size]
            self._read[path] = self._read.get(path, 0) + len(whole)
            content += whole
        table = numpy.frombuffer(content, dtype="<i8").reshape(-1, 5)
        return Entries(*(table[:, column] for column in range(5)))


def arrivals(ledger: Ledger) -> Entries:
    """Everything that arrived so far."""
    return Arrivals(ledger).new()
