"""Items on their way: what a task has emitted, and the envelope parts that travel on a stream."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, TypeVar

import numpy as np

from penstock.sim.arrays import Bools, Floats, Ints, run_positions, starts_of, sums_of_runs

if TYPE_CHECKING:
    from numpy.typing import NDArray

T = TypeVar("T", bound=np.generic)


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
    return _pieced([(earlier, earlier.counts * 0, earlier.counts), (later, later.counts * 0, later.counts)])


def leaving_by(horizon_s: float, earlier: Emitted, later: Emitted) -> tuple[Emitted, Emitted]:
    """Per replica the earlier, then the later items: those that leave by the horizon, and the rest."""
    pieces = [(items, _leaving_counts(items, horizon_s)) for items in (earlier, later)]
    gone = _pieced([(items, items.counts * 0, leaving) for items, leaving in pieces])
    rest = _pieced([(items, leaving, items.counts) for items, leaving in pieces])
    return gone, rest


def _leaving_counts(items: Emitted, horizon_s: float) -> Ints:
    """How many items of each replica leave by the horizon; they are the first ones."""
    late = np.flatnonzero(items.time > horizon_s)
    owner = np.searchsorted(np.cumsum(items.counts), late, side="right")
    return items.counts - np.bincount(owner, minlength=items.counts.size)


def _pieced(pieces: list[tuple[Emitted, Ints, Ints]]) -> Emitted:
    """Items begin..end of each replica of every piece, replica by replica."""
    counts = np.sum([end - begin for _, begin, end in pieces], axis=0)
    used = [(items, begin, end) for items, begin, end in pieces if (end > begin).any()]
    if not used:
        return Emitted.nothing(counts.size)
    if len(used) == 1 and used[0][0].time.size == counts.sum():
        return used[0][0]
    spans = []
    for items, begin, end in used:
        start = starts_of(items.counts)
        spans.append(
            [slice(b, e) for b, e in zip((start + begin).tolist(), (start + end).tolist(), strict=True)]
        )
    turns = list(zip(*spans, strict=True))
    vias = [items.via for items, _, _ in used]
    copies = [items.copies for items, _, _ in used]

    def dealt(columns: list[NDArray[T]]) -> NDArray[T]:
        return np.concatenate(
            [column[span] for turn in turns for column, span in zip(columns, turn, strict=True)]
        )

    return Emitted(
        dealt([items.time for items, _, _ in used]),
        dealt([items.origin for items, _, _ in used]),
        counts,
        dealt([via for via in vias if via is not None]) if vias[0] is not None else None,
        dealt(
            [
                np.ones(items.time.size, dtype=np.int64) if own is None else own
                for (items, _, _), own in zip(used, copies, strict=True)
            ]
        )
        if any(own is not None for own in copies)
        else None,
    )


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
            self.channel.take(index),
            self.receiver.take(index),
            self.ships_at.take(index),
            self.size.take(index),
            self.emit_sum.take(index),
            self.opens.take(index),
            self.base.take(index),
            self.stride.take(index),
            self.origins,
        )

    def compact(self) -> Parts:
        """The same parts with just their own origins, one part after the other."""
        origins = self.origins.take(run_positions(self.base, self.stride, self.size))
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
