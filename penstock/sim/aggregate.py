"""Tasks that do not emit item for item: one item per group, or one per window.

Their latency is read-write: from reading an item to the next write (thesis, section 4.1). What a group emits
derives from all its items; its origin is that of one of them, drawn evenly, as a sampled tag would be. A
window is measured by its first item, which waits longest: the public code samples the first item after each
reset, and only so do a window of 200 ms, a bound of 215 ms and a 95th percentile near it (thesis, section
5.3.2) fit.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from penstock.sim.arrays import Bools, Floats, Ints, starts_of
from penstock.sim.parts import Emitted

if TYPE_CHECKING:
    from penstock.sim.meters import Moments


def group_copies(copies: Ints, counts: Ints, filled: Ints, group: int) -> Ints:
    """How many groups each item completes; `filled` (per replica) is carried on.

    `copies` says how often each item enters, in order, `counts` how many items each replica has.
    """
    entered = np.cumsum(copies)
    begin = starts_of(counts)
    before_replica = (
        (entered - copies)[np.minimum(begin, max(0, entered.size - 1))] if entered.size else begin
    )
    level = np.repeat(filled - before_replica, counts) + entered
    done = level // group - (level - copies) // group
    ends = begin + counts - 1
    busy = counts > 0
    filled[busy] = level[ends[busy]] % group
    return done


def meter_groups(
    read: Floats, written: Floats, copies: Ints, counts: Ints, group: int, latency: Moments
) -> None:
    """Add the read-write latencies of those groups whose items all lie in this step."""
    ends = np.flatnonzero(copies)
    position = ends - np.repeat(starts_of(counts), counts)[ends]
    ends = ends[position >= group - 1]
    reads = np.concatenate([[0.0], np.cumsum(read)])
    members = reads[ends + 1] - reads[ends + 1 - group]
    latency.add(float(ends.size * group), float((group * written[ends] - members).sum()))


def random_member(origin: Floats, counts: Ints, group: int, rng: np.random.Generator) -> Floats:
    """For each item the origin of one of the `group` items up to it, of the same replica."""
    position = np.arange(origin.size)
    first = np.repeat(starts_of(counts), counts)
    chosen: Floats = origin[np.maximum(first, position - rng.integers(0, group, origin.size))]
    return chosen


def next_tick(time: Floats, counts: Ints, every_s: float) -> Floats:
    """When the window that holds each item ends; replicas' windows are spread evenly."""
    phase = np.repeat(np.arange(counts.size) * (every_s / counts.size), counts)
    return np.asarray(np.ceil((time - phase) / every_s) * every_s + phase)


def opens_window(tick: Floats, counts: Ints, last_tick: Floats) -> Ints:
    """Index of the items that are the first of their window; `last_tick` (per replica) is carried on."""
    replica = np.repeat(np.arange(counts.size), counts)
    first = _changes(tick, replica) & (tick > last_tick[replica])
    busy = np.flatnonzero(counts)
    last_tick[busy] = tick[(starts_of(counts) + counts - 1)[busy]]
    return np.flatnonzero(first)


def one_per_window(finished: Emitted) -> Emitted:
    """One item for each run of equal times of a replica, with the origin of the first."""
    if finished.time.size == 0:
        return finished
    replica = finished.replicas()
    opens = np.flatnonzero(_changes(finished.time, replica))
    counts = np.bincount(replica[opens], minlength=finished.counts.size).astype(np.int64)
    return Emitted(finished.time[opens], finished.origin[opens], counts)


def _changes(time: Floats, replica: Ints) -> Bools:
    """Whether an item differs from the one before in time or replica."""
    return np.asarray((np.diff(time, prepend=-np.inf) != 0.0) | (np.diff(replica, prepend=-1) != 0))
