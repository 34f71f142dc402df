"""Which items share an envelope: the sender's batch lifetime and item limit, for all channels at once.

A channel's envelope opens with the first item that finds none open. It ships one lifetime after it opened, or
with the item that fills it. So, along the items of a channel,

    item k opens an envelope  <=>  time_k >= deadline of the envelope before it
    ships at                  =   min(time of its first item + lifetime, time of the item that fills it)

Two kernels compute the same thing. `close_by_row` walks along the items of all channels side by side (one
vector operation per turn: best for many channels with few items each). `close_by_jump` walks from envelope to
envelope by binary search (best for few or unequal channels). Both see only the items of one time step; an
envelope that stays open is continued by the next step.

That is how Nephele batches. On Spark a sender has one timer for all channels of a stream: it starts with the
first item that finds nothing open in any of them, and all ship together; `close_together`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from penstock.sim.arrays import Bools, Floats, Ints, starts_of, sums_of_runs

if TYPE_CHECKING:
    from numpy.typing import NDArray

NOTHING_OPEN = -np.inf


@dataclass(frozen=True, slots=True)
class OpenEnvelopes:
    """Per channel: when its open envelope will ship (minus infinity: none is open) and how full it is."""

    deadline: Floats
    filled: Ints

    @classmethod
    def none(cls, channels: int) -> OpenEnvelopes:
        return cls(np.full(channels, NOTHING_OPEN), np.zeros(channels, dtype=np.int64))


@dataclass(frozen=True, slots=True)
class ClosedRuns:
    """Consecutive items of a channel that are in one envelope: `size` items at base, base + stride, ...

    `ships_at` lies behind the step's end for an envelope that is still open; `opens` is false for items that
    joined an envelope opened in an earlier step; `filled` is the envelope's number of items so far.
    """

    channel: Ints
    base: Ints
    stride: int
    size: Ints
    ships_at: Floats
    emit_sum: Floats
    opens: Bools
    filled: Ints


@dataclass(frozen=True, slots=True)
class Grid:
    """Items of senders that deal them to `slots` channels in turn; `times` is sorted by sender, then time.

    `phase` is the slot at which each sender goes on. Channel number = sender x slots + slot.
    """

    times: Floats
    counts: Ints
    phase: Ints
    slots: int

    def turns(self) -> Floats:
        """Array of (turn, sender, slot); what lies before a sender's phase is -inf, behind its end +inf."""
        senders = self.counts.size
        turns = max(1, -(-int((self.phase + self.counts).max()) // self.slots))
        width = turns * self.slots
        cells = np.full(senders * width, np.inf)
        offset = np.arange(senders) * width + self.phase - starts_of(self.counts)
        cells[np.arange(self.times.size) + np.repeat(offset, self.counts)] = self.times
        grid = cells.reshape(senders, width)
        grid[:, : self.slots][np.arange(self.slots) < self.phase[:, None]] = -np.inf
        return grid.reshape(senders, turns, self.slots).transpose(1, 0, 2)

    def channel_of_items(self) -> Ints:
        """The channel of every item, in the order of `times`."""
        sender = np.repeat(np.arange(self.counts.size), self.counts)
        turn = np.arange(self.times.size) + np.repeat(self.phase - starts_of(self.counts), self.counts)
        return sender * self.slots + turn % self.slots


def close_by_row(grid: Grid, lifetime_s: Floats, limit: int | None, before: OpenEnvelopes) -> ClosedRuns:
    """Walk turn by turn over all channels of the grid; `lifetime_s` is by channel."""
    cells = grid.turns()
    shape = (cells.shape[1], cells.shape[2])
    deadline = before.deadline.reshape(shape).copy()
    lifetime = lifetime_s.reshape(shape)
    filled = before.filled.reshape(shape).copy()
    run = np.empty(cells.shape, dtype=np.int32)
    total = np.empty(cells.shape)
    fresh = np.empty(shape, dtype=bool)
    # With fewer items than fill an envelope, counting them is in vain.
    reached = limit if limit is not None and cells.shape[0] + int(filled.max()) >= limit else None
    real = np.isfinite(cells[0])
    np.greater_equal(cells[0], deadline, out=fresh)
    fresh &= real
    run[0] = real
    total[0] = np.where(real, cells[0], 0.0)
    _step(cells[0], fresh, real, deadline, filled, lifetime, reached)
    with np.errstate(invalid="ignore"):
        for turn in range(1, cells.shape[0]):
            times = cells[turn]
            np.greater_equal(times, deadline, out=fresh)
            same = ~fresh
            np.multiply(run[turn - 1], same, out=run[turn])
            run[turn] += 1
            np.multiply(total[turn - 1], same, out=total[turn])
            total[turn] += times
            _step(times, fresh, None, deadline, filled, lifetime, reached)
    return _runs_of(grid, cells, run, total, lifetime_s, limit, before)


def _step(
    times: Floats,
    fresh: Bools,
    real: Bools | None,
    deadline: Floats,
    filled: Ints,
    lifetime_s: Floats,
    limit: int | None,
) -> None:
    np.add(times, lifetime_s, out=deadline, where=fresh)
    if limit is None:
        return
    filled *= ~fresh
    filled += 1 if real is None else real
    np.copyto(deadline, times, where=filled >= limit)


def _runs_of(
    grid: Grid,
    cells: Floats,
    run: NDArray[np.int32],
    total: Floats,
    lifetime_s: Floats,
    limit: int | None,
    before: OpenEnvelopes,
) -> ClosedRuns:
    channels = cells.shape[1] * cells.shape[2]
    last = np.empty(run.shape, dtype=bool)
    np.equal(run[1:], 1, out=last[:-1])
    last[-1] = True
    # A run that is empty lies before a sender's phase; one of infinite time, behind its end.
    last &= run > 0
    turn, channel = np.nonzero(last.reshape(-1, channels))
    place_in_table = turn * channels
    place_in_table += channel
    emit_sum = total.reshape(-1).take(place_in_table)
    size = run.reshape(-1).take(place_in_table).astype(np.int64)
    keep = np.flatnonzero(np.isfinite(emit_sum))
    if keep.size < emit_sum.size:
        turn, channel, emit_sum, size = turn[keep], channel[keep], emit_sum[keep], size[keep]
    first_turn = turn - size + 1
    slot = np.arange(grid.slots)
    place = ((starts_of(grid.counts) - grid.phase)[:, None] + slot).reshape(-1)
    skipped = (grid.phase[:, None] > slot).reshape(-1)
    base = place[channel] + first_turn * grid.slots
    final = base + (size - 1) * grid.slots
    begins = first_turn == skipped[channel]
    joins = begins & (grid.times[base] < before.deadline[channel])
    return _closed(
        grid.times, channel, base, final, grid.slots, size, emit_sum, joins, lifetime_s, limit, before
    )


def close_by_jump(
    times: Floats,
    channel_counts: Ints,
    lifetime_s: Floats,
    limit: int | None,
    before: OpenEnvelopes,
    pause_s: float = 0.0,
) -> ClosedRuns:
    """Walk envelope by envelope; `times` is grouped by channel, `channel_counts` long.

    A sender with pauses looks for items once in `pause_s`: an envelope has got the items up to its last look.
    """
    busy = np.flatnonzero(channel_counts)
    counts = channel_counts[busy]
    position = starts_of(counts)
    end = position + counts
    origin = times.min() if times.size else 0.0
    span = (times.max() - origin if times.size else 0.0) + 1.0
    lane = np.arange(busy.size) * span
    keys = np.repeat(lane, counts) + (times - origin)
    room = np.iinfo(np.int64).max if limit is None else limit
    found: list[tuple[Ints, Ints, Ints, Bools]] = []
    channel = busy
    joins = times[position] < _last_look(before.deadline[channel], pause_s)
    free = np.where(joins, room - before.filled[channel], room)
    deadline = np.where(joins, before.deadline[channel], times[position] + lifetime_s[channel])
    while channel.size:
        closes = _last_look(deadline, pause_s)
        reach = np.searchsorted(keys, lane + np.minimum(closes - origin, span), side="left")
        stop = np.minimum(np.maximum(reach, position + 1), end)
        stop = np.where(stop - position > free, position + free, stop)
        found.append((channel, position, stop - position, joins))
        more = stop < end
        channel, position, end, lane = channel[more], stop[more], end[more], lane[more]
        joins = np.zeros(channel.size, dtype=bool)
        free = np.full(channel.size, room)
        deadline = times[position] + lifetime_s[channel]
    if not found:
        nothing = np.empty(0, dtype=np.int64)
        found.append((nothing, nothing, nothing, np.empty(0, dtype=bool)))
    channels, base, size = (np.concatenate([part[i] for part in found]) for i in range(3))
    joined = np.concatenate([part[3] for part in found])
    order = np.argsort(base, kind="stable")
    channels, base, size, joined = channels[order], base[order], size[order], joined[order]
    emit_sum = sums_of_runs(times, size)
    return _closed(
        times, channels, base, base + size - 1, 1, size, emit_sum, joined, lifetime_s, limit, before
    )


def _last_look(deadline: Floats, pause_s: float) -> Floats:
    return np.floor(deadline / pause_s) * pause_s if pause_s else deadline


def close_together(
    times: Floats,
    counts: Ints,
    channel: Ints,
    order: Ints,
    lifetime_s: Floats,
    before: OpenEnvelopes,
    pause_s: float = 0.0,
) -> ClosedRuns:
    """All channels of a sender ship at once; `times` is sorted by sender (`counts` long), then time.

    The runs are of items in `order`, the stable order of their channels. Nothing fills an envelope.
    """
    slots = before.deadline.size // counts.size
    until = before.deadline.reshape(-1, slots).max(axis=1)
    timers = OpenEnvelopes(until, np.zeros(counts.size, dtype=np.int64))
    waves = close_by_jump(times, counts, lifetime_s[::slots], None, timers, pause_s)
    channels, wave = channel[order], np.repeat(np.arange(waves.size.size), waves.size)[order]
    base = np.flatnonzero((np.diff(channels, prepend=-1) != 0) | (np.diff(wave, prepend=-1) != 0))
    size = np.diff(base, append=times.size)
    channels, wave = channels[base], wave[base]
    joins = ~waves.opens[wave] & (before.deadline[channels] > NOTHING_OPEN)
    filled = np.where(joins, before.filled[channels], 0) + size
    emit_sum = sums_of_runs(times[order], size)
    return ClosedRuns(channels, base, 1, size, waves.ships_at[wave], emit_sum, ~joins, filled)


def _closed(
    times: Floats,
    channel: Ints,
    base: Ints,
    final: Ints,
    stride: int,
    size: Ints,
    emit_sum: Floats,
    joins: Bools,
    lifetime_s: Floats,
    limit: int | None,
    before: OpenEnvelopes,
) -> ClosedRuns:
    ships_at = np.where(joins, before.deadline[channel], times[base] + lifetime_s[channel])
    filled = np.where(joins, before.filled[channel], 0) + size
    if limit is not None:
        ships_at = np.where(filled >= limit, times[final], ships_at)
    return ClosedRuns(channel, base, stride, size, ships_at, emit_sum, ~joins, filled)
