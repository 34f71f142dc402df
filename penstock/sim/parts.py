"""Items on their way: what a task has emitted, and the envelope parts that travel on a stream."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from penstock.sim.arrays import Bools, Floats, Ints, run_positions, starts_of

if TYPE_CHECKING:
    from numpy.typing import NDArray


@dataclass(frozen=True, slots=True)
class Emitted:
    """Items leaving a task in one step, sorted by replica and then by time.

    `origin` is when the item, or the item it derives from, left its source; `via` the number of the stream by
    which it had come (all zero unless the task has several inputs).
    """

    time: Floats
    origin: Floats
    via: NDArray[np.int8] | None
    counts: Ints

    @classmethod
    def nothing(cls, replicas: int) -> Emitted:
        return cls(np.empty(0), np.empty(0), None, np.zeros(replicas, dtype=np.int64))

    def only(self, mask: Bools) -> Emitted:
        """Those items for which `mask` holds."""
        counts = np.bincount(self.replicas()[mask], minlength=self.counts.size).astype(np.int64)
        via = None if self.via is None else self.via[mask]
        return Emitted(self.time[mask], self.origin[mask], via, counts)

    def repeated(self, copies: Ints) -> Emitted:
        """Each item as often as `copies` says."""
        counts = np.bincount(self.replicas(), weights=copies, minlength=self.counts.size).astype(np.int64)
        via = None if self.via is None else np.repeat(self.via, copies)
        return Emitted(np.repeat(self.time, copies), np.repeat(self.origin, copies), via, counts)

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
    place_earlier = np.arange(earlier.time.size) + np.repeat(begin - starts_of(earlier.counts), earlier.counts)
    shift_later = begin + earlier.counts - starts_of(later.counts)
    place_later = np.arange(later.time.size) + np.repeat(shift_later, later.counts)
    total = earlier.time.size + later.time.size
    time, origin = np.empty(total), np.empty(total)
    time[place_earlier], time[place_later] = earlier.time, later.time
    origin[place_earlier], origin[place_later] = earlier.origin, later.origin
    via = None
    if earlier.via is not None or later.via is not None:
        via = np.zeros(total, dtype=np.int8)
        via[place_earlier] = 0 if earlier.via is None else earlier.via
        via[place_later] = 0 if later.via is None else later.via
    return Emitted(time, origin, via, counts)


def merged(first: Emitted, second: Emitted) -> Emitted:
    """Items of two origins in order of time per replica."""
    joined = followed_by(first, second)
    if first.time.size == 0 or second.time.size == 0:
        return joined
    order = np.lexsort((joined.time, joined.replicas()))
    via = None if joined.via is None else joined.via[order]
    return Emitted(joined.time[order], joined.origin[order], via, joined.counts)


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
