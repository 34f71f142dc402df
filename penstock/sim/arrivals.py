"""All that arrives at a task in one step, in the order in which its replicas serve it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeVar

import numpy as np

from penstock.sim.arrays import Floats, Ints, run_positions

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from penstock.sim.model import StreamModel
    from penstock.sim.parts import Parts

A = TypeVar("A", bound=np.generic)


@dataclass(frozen=True, slots=True)
class Arrivals:
    """Parts sorted by replica and arrival, and the origins of their items in that order.

    `first` is the index of the first part of each of the `servers` that have one; `via` and `item_via` (the
    number of the stream) are None when the task has a single input.
    """

    receiver: Ints
    arrival: Floats
    size: Ints
    emit_sum: Floats
    ships_at: Floats
    opening_s: Floats
    origin: Floats
    via: NDArray[np.int8] | None
    item_via: NDArray[np.int8] | None
    first: Ints
    servers: Ints

    @property
    def last(self) -> Ints:
        """Index of the last part of each server."""
        return np.append(self.first[1:], self.receiver.size) - 1


def in_service_order(arrived: list[Parts], inputs: list[StreamModel]) -> Arrivals:
    """Sort the parts of all input streams by replica, then by arrival."""
    single = len(arrived) == 1
    receiver = _joined([parts.receiver for parts in arrived])
    travel = [stream.costs.transport_s for stream in inputs]
    arrival = _joined([parts.ships_at + time for parts, time in zip(arrived, travel, strict=True)])
    earliest = arrival.min()
    order = _by_receiver_and_time(receiver, arrival - earliest)
    arrival = arrival.take(order)
    offsets = np.cumsum([0] + [parts.origins.size for parts in arrived[:-1]])
    base = _joined([parts.base + offset for parts, offset in zip(arrived, offsets, strict=True)]).take(order)
    strides = _joined([parts.stride for parts in arrived])
    size = _joined([parts.size for parts in arrived]).take(order)
    opening = [
        np.where(parts.opens, stream.costs.receive_envelope_s, 0.0)
        for parts, stream in zip(arrived, inputs, strict=True)
    ]
    via = None
    if not single:
        via = _joined([np.full(parts.size.size, n, dtype=np.int8) for n, parts in enumerate(arrived)]).take(
            order
        )
    receiver = receiver.take(order)
    first = np.flatnonzero(np.diff(receiver, prepend=-1))
    uniform = strides.min() == strides.max()
    stride = strides if uniform else strides.take(order)
    return Arrivals(
        receiver=receiver,
        arrival=arrival,
        size=size,
        emit_sum=_joined([parts.emit_sum for parts in arrived]).take(order),
        ships_at=arrival - travel[0] if via is None else arrival - np.array(travel)[via],
        opening_s=_joined(opening).take(order),
        origin=_joined([parts.origins for parts in arrived]).take(run_positions(base, stride, size)),
        via=via,
        item_via=None if via is None else np.repeat(via, size),
        first=first,
        servers=receiver[first],
    )


def _by_receiver_and_time(receiver: Ints, time: Floats) -> Ints:
    """A stable order: parts of one envelope arrive together, and the part that opened it stays first.

    Grouping by receiver first (a radix sort for short integers) leaves runs that are nearly sorted, which a
    stable sort finishes in half the time that sorting everything at once takes.
    """
    grouped = np.argsort(receiver.astype(np.uint16), kind="stable")
    span = time.max() + 1.0
    key = receiver.take(grouped) * span
    key += time.take(grouped)
    return grouped.take(np.argsort(key, kind="stable"))


def _joined(arrays: list[NDArray[A]]) -> NDArray[A]:
    return arrays[0] if len(arrays) == 1 else np.concatenate(arrays)
