"""Items on their way: what a task has emitted, and the envelope parts that travel on a stream."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from penstock.sim.arrays import Bools, Floats, Ints, run_positions, starts_of, sums_of_runs

if TYPE_CHECKING:
    from numpy.typing import NDArray


@dataclass(frozen=True, slots=True)
class Emitted:
    """Items leaving a task in one step, sorted by replica and then by time.

    `origin` is when the item, or the item it derives from, left its source; `via` the number of the stream by
    which it had come (None: there is only one); `copies` how many items leave for it (None: one each).
    """

    time: Floats
    origin: Floats
    counts: Ints
    via: NDArray[np.int8] | None = None
    copies: Ints | None = None

    @classmethod
    def nothing(cls, replicas: int) -> Emitted:
        return cls(np.empty(0), np.empty(0), np.zeros(replicas, dtype=np.int64))

    def only(self, mask: Bools) -> Emitted:
        """Those items for which `mask` holds."""
        ends = np.cumsum(mask, dtype=np.int64)
        upto = np.concatenate([[0], ends])[np.concatenate([[0], np.cumsum(self.counts)])]
        return self._with(mask, np.diff(upto))

    def split_at(self, horizon_s: float) -> tuple[Emitted, Emitted]:
        """What leaves by the horizon, and the rest (few items, at the end of each replica's run)."""
        late = np.flatnonzero(self.time > horizon_s)
        if late.size == 0:
            return self, Emitted.nothing(self.counts.size)
        owner = np.searchsorted(np.cumsum(self.counts), late, side="right")
        counts = np.bincount(owner, minlength=self.counts.size).astype(np.int64)
        mask = np.ones(self.time.size, dtype=bool)
        mask[late] = False
        return self._with(mask, self.counts - counts), self._with(late, counts)

    def repeated(self, copies: Ints) -> Emitted:
        """Each item as often as `copies` says."""
        counts = sums_of_runs(copies, self.counts).astype(np.int64)
        return self._with(np.repeat(np.arange(self.time.size), copies), counts)

    def reassigned(self, replica: Ints, replicas: int) -> Emitted:
        """The items given to other replicas, in order of time there."""
        order = np.lexsort((self.time, replica))
        return self._with(order, np.bincount(replica, minlength=replicas).astype(np.int64))

    def _with(self, index: Ints | Bools, counts: Ints) -> Emitted:
        via = None if self.via is None else self.via[index]
        copies = None if self.copies is None else self.copies[index]
        return Emitted(self.time[index], self.origin[index], counts, via, copies)

    def replicas(self) -> Ints:
        return np.repeat(np.arange(self.counts.size), self.counts)


def followed_by(earlier: Emitted, later: Emitted) -> Emitted:
    """Per replica the earlier items, then the later ones."""
    if earlier.time.size == 0:
        return later
    if later.time.size == 0:
        return earlier
    counts = earlier.counts + later.counts
    begin = starts_of(counts)
    old = np.arange(earlier.time.size) + np.repeat(begin - starts_of(earlier.counts), earlier.counts)
    shift = begin + earlier.counts - starts_of(later.counts)
    new = np.arange(later.time.size) + np.repeat(shift, later.counts)
    time, origin = np.empty(old.size + new.size), np.empty(old.size + new.size)
    time[old], time[new] = earlier.time, later.time
    origin[old], origin[new] = earlier.origin, later.origin
    via, copies = None, None
    if earlier.via is not None or later.via is not None:
        via = np.zeros(time.size, dtype=np.int8)
        via[old] = 0 if earlier.via is None else earlier.via
        via[new] = 0 if later.via is None else later.via
    if earlier.copies is not None or later.copies is not None:
        copies = np.ones(time.size, dtype=np.int64)
        copies[old] = 1 if earlier.copies is None else earlier.copies
        copies[new] = 1 if later.copies is None else later.copies
    return Emitted(time, origin, counts, via, copies)


def merged(first: Emitted, second: Emitted) -> Emitted:
    """Items of two senders' queues in order of time per replica."""
    joined = followed_by(first, second)
    if first.time.size == 0 or second.time.size == 0:
        return joined
    return joined.reassigned(joined.replicas(), joined.counts.size)


@dataclass(frozen=True, slots=True)
class Parts:
    """Envelope parts: each is `size` items for one receiver that arrive together.

    The items' origins are `origins[base], origins[base + stride], ...`. `opens` marks the part that pays the
    receiver's cost per envelope; `emit_sum` is the sum of the items' emission times.
    """

    channel: Ints
    receiver: Ints
    ships_at: Floats
    size: Ints
    emit_sum: Floats
    opens: Bools
    base: Ints
    stride: Ints
    origins: Floats

    @classmethod
    def nothing(cls) -> Parts:
        whole, real = np.empty(0, dtype=np.int64), np.empty(0)
        return cls(whole, whole, real, whole, real, np.empty(0, dtype=bool), whole, whole, real)

    def only(self, mask: Bools) -> Parts:
        index = np.flatnonzero(mask)
        return Parts(
            self.channel[index],
            self.receiver[index],
            self.ships_at[index],
            self.size[index],
            self.emit_sum[index],
            self.opens[index],
            self.base[index],
            self.stride[index],
            self.origins,
        )

    def compact(self) -> Parts:
        """The same parts with just their own origins, one part after the other."""
        origins = self.origins[run_positions(self.base, self.stride, self.size)]
        return replace(self, base=starts_of(self.size), stride=np.ones_like(self.size), origins=origins)

    def items(self) -> int:
        return int(self.size.sum())


def concatenated(parts: list[Parts]) -> Parts:
    """All parts, in the order given."""
    filled = [part for part in parts if part.size.size]
    if len(filled) <= 1:
        return filled[0] if filled else Parts.nothing()
    offsets = np.cumsum([0] + [part.origins.size for part in filled[:-1]])
    return Parts(
        np.concatenate([part.channel for part in filled]),
        np.concatenate([part.receiver for part in filled]),
        np.concatenate([part.ships_at for part in filled]),
        np.concatenate([part.size for part in filled]),
        np.concatenate([part.emit_sum for part in filled]),
        np.concatenate([part.opens for part in filled]),
        np.concatenate([part.base + offset for part, offset in zip(filled, offsets, strict=True)]),
        np.concatenate([part.stride for part in filled]),
        np.concatenate([part.origins for part in filled]),
    )
