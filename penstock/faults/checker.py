"""What a trial must show of its items: none lost, none twice that was committed, all in order, in time again.

Recovery: items are put into windows of half a second by their due times, from the fault on. A window is held
if the mean latency of the first arrivals of its items is within the bound.

    recovered after = end of the last window that was not held; unknown if that is the last window of all
"""

from collections.abc import Mapping
from pathlib import Path
from typing import Final

import msgspec
import numpy

from penstock.testing.arrivals import Entries

BOUND_MS: Final = 100.0
WINDOW_S: Final = 0.5
_NS_PER_S = 1e9

Counts = Mapping[int, int]
"""A number of items for each partition of the source."""


class _Line(msgspec.Struct):
    item: tuple[int, int, int, int, int]


def written_once(directory: Path) -> Entries:
    """What the sink `Once` has written, replica by replica; a line that is just being written is left out."""
    decoder = msgspec.json.Decoder(_Line)
    rows = [
        decoder.decode(line).item
        for path in sorted(directory.glob("part-*.jsonl"))
        for line in path.read_bytes().split(b"\n")[:-1]
    ]
    table = numpy.array(rows, dtype=numpy.int64).reshape(-1, 5)
    return Entries(*(table[:, column] for column in range(5)))


def twice_though_committed(entries: Entries, committed: Counts) -> int:
    """How many arrivals were not the first of their item, of those that a commit before the fault covers."""
    covered = numpy.zeros(len(entries), dtype=numpy.bool_)
    for partition, count in committed.items():
        covered |= (entries.partition == partition) & (entries.index < count)
    return entries.where(covered).duplicated()


def recovered_s(entries: Entries, struck_ns: int, bound_ms: float = BOUND_MS) -> float | None:
    """Seconds after the fault from which on every window was held; None if that never came."""
    first = _first_arrivals(entries)
    after = first.where(first.due_ns >= struck_ns)
    if not len(after):
        return None
    window = ((after.due_ns - struck_ns) / (WINDOW_S * _NS_PER_S)).astype(numpy.int64)
    totals = numpy.bincount(window, weights=after.latency_ms())
    counts = numpy.bincount(window)
    missed = numpy.flatnonzero(totals > bound_ms * counts)
    if not len(missed):
        return 0.0
    last = int(missed[-1])
    return None if last == len(counts) - 1 else (last + 1) * WINDOW_S


def remaining_s(entries: Entries, struck_ns: int) -> float:
    """For how long items still came due after the fault; 0 if it came too late to matter."""
    return max(0.0, float(entries.due_ns.max() - struck_ns) / _NS_PER_S) if len(entries) else 0.0


def _first_arrivals(entries: Entries) -> Entries:
    """Each item once, as it arrived first."""
    chosen = numpy.zeros(len(entries), dtype=numpy.bool_)
    if len(entries):
        by_time = numpy.argsort(entries.arrived_ns, kind="stable")
        keys = numpy.stack([entries.partition[by_time], entries.index[by_time]], axis=1)
        chosen[by_time[numpy.unique(keys, axis=0, return_index=True)[1]]] = True
    return entries.where(chosen)
