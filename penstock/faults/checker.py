"""What a trial must show of its items: none lost, none twice that was committed, all in order, in time again.

Recovery: items are put into windows of half a second by their due times, from the fault on. A window is held
if the mean latency of the first arrivals of its items is within the bound.

    recovered after = end of the last window that was not held; unknown if that is the last window of all
"""

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Final

import msgspec
import numpy
from numpy.typing import NDArray

from penstock.testing.arrivals import Entries

BOUND_MS: Final = 100.0
WINDOW_S: Final = 0.5
SETTLED_WINDOWS: Final = 4
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


def reordered_of_a_key(entries: Entries, keys: int) -> int:
    """How many items arrived after a later one of their split and key (number modulo keys)."""
    order = numpy.argsort(entries.arrived_ns, kind="stable")
    sorted_by_time = Entries(*(getattr(entries, column)[order] for column in Entries.__dataclass_fields__))
    return replace(sorted_by_time, mark=sorted_by_time.index % keys).reordered_by_mark()


def twice_though_committed(entries: Entries, committed: Counts, noted_ns: int) -> int:
    """How many arrivals were not the first of their item, of those that were committed at that time, and
    that came after it: workers may have died before, too.
    """
    covered = numpy.zeros(len(entries), dtype=numpy.bool_)
    for partition, count in committed.items():
        covered |= (entries.partition == partition) & (entries.index < count)
    before = covered & (entries.arrived_ns < noted_ns)
    return entries.where(covered).duplicated() - entries.where(before).duplicated()


def recovered_s(entries: Entries, struck_ns: int) -> float | None:
    """Seconds after the fault from which on every window was held; None if that never came."""
    held = _held(entries, struck_ns)
    if not len(held):
        return None
    missed = numpy.flatnonzero(~held)
    if not len(missed):
        return 0.0
    last = int(missed[-1])
    return None if last == len(held) - 1 else (last + 1) * WINDOW_S


def settled_s(entries: Entries, struck_ns: int) -> float | None:
    """Seconds after the fault from which on the windows of two seconds were held; None if none were."""
    row = 0
    for place, held in enumerate(_held(entries, struck_ns).tolist()):
        row = row + 1 if held else 0
        if row == SETTLED_WINDOWS:
            return (place + 1 - SETTLED_WINDOWS) * WINDOW_S
    return None


def held_share(entries: Entries) -> float | None:
    """The share of all windows that were held; None without any."""
    held = _held(entries, int(entries.due_ns.min())) if len(entries) else numpy.array([])
    return float(held.mean()) if len(held) else None


def remaining_s(entries: Entries, struck_ns: int) -> float:
    """For how long items still came due after the fault; 0 if it came too late to matter."""
    return max(0.0, float(entries.due_ns.max() - struck_ns) / _NS_PER_S) if len(entries) else 0.0


def _held(entries: Entries, since_ns: int) -> NDArray[numpy.bool_]:
    """Of each window from a time on, whether it was held; one without items was."""
    first = _first_arrivals(entries.where(entries.due_ns >= since_ns))
    window = ((first.due_ns - since_ns) / (WINDOW_S * _NS_PER_S)).astype(numpy.int64)
    totals = numpy.bincount(window, weights=first.latency_ms())
    held: NDArray[numpy.bool_] = totals <= BOUND_MS * numpy.bincount(window)
    return held


def _first_arrivals(entries: Entries) -> Entries:
    """Each item once, as it arrived first."""
    chosen = numpy.zeros(len(entries), dtype=numpy.bool_)
    if len(entries):
        by_time = numpy.argsort(entries.arrived_ns, kind="stable")
        keys = numpy.stack([entries.partition[by_time], entries.index[by_time]], axis=1)
        chosen[by_time[numpy.unique(keys, axis=0, return_index=True)[1]]] = True
    return entries.where(chosen)
