"""What a simulated task and its input streams measured in one interval."""

from __future__ import annotations

from dataclasses import dataclass, fields, replace
from typing import TYPE_CHECKING

import numpy as np

from penstock.sim.arrays import Bools, Floats, Ints, fitted, sums_of_runs

if TYPE_CHECKING:
    from numpy.typing import NDArray


@dataclass(slots=True)
class Moments:
    """Number, sum and sum of squares."""

    count: float = 0.0
    total: float = 0.0
    squares: float = 0.0

    def add(self, count: float, total: float, squares: float = 0.0) -> None:
        self.count += float(count)
        self.total += float(total)
        self.squares += float(squares)

    @property
    def mean(self) -> float | None:
        return self.total / self.count if self.count else None

    @property
    def cv(self) -> float | None:
        if not self.count or self.total <= 0.0:
            return None
        mean = self.total / self.count
        return float(np.sqrt(max(0.0, self.squares / self.count - mean * mean)) / mean)


@dataclass(slots=True)
class StreamMeter:
    """A stream as its receiver sees it: emission to reading, and emission to shipping."""

    latency: Moments
    batching: Moments

    @classmethod
    def empty(cls) -> StreamMeter:
        return cls(Moments(), Moments())


class TaskMeter:
    """Sums over the items that a task finished in this interval.

    The queue wait is from shipping to reading, the transport included: the two times an envelope tells
    (thesis, section 4.6.2: channel latency less output batch latency).
    """

    def __init__(self, replicas: int, inputs: int) -> None:
        self.service = Moments()
        self.queue_wait = Moments()
        self.latency = Moments()
        self.inputs = [StreamMeter.empty() for _ in range(inputs)]
        self.gaps = np.zeros((3, replicas))
        self.busy_s = np.zeros(replicas)
        self.blocked_s = 0.0
        self.processed = np.zeros(replicas)
        self.chained_in = np.zeros(replicas)
        self.observed_s = np.zeros(replicas)

    def resize(self, replicas: int) -> None:
        """Go on with another number of replicas."""
        self.gaps = np.stack([fitted(row, replicas) for row in self.gaps])
        self.busy_s = fitted(self.busy_s, replicas)
        self.processed = fitted(self.processed, replicas)
        self.chained_in = fitted(self.chained_in, replicas)
        self.observed_s = fitted(self.observed_s, replicas)

    def book_chained(self, copies: Ints, service: Floats, counts: Ints, *, own_latency: bool) -> None:
        """Items that this task served inside a chain: no queue, no stream."""
        items, total = float(service.size), float(service.sum())
        self.service.add(items, total, float(np.square(service).sum()))
        self.queue_wait.add(items, 0.0)
        if own_latency:
            self.latency.add(items, total)
        self.inputs[0].latency.add(items, 0.0)
        self.inputs[0].batching.add(items, 0.0)
        handed_on = sums_of_runs(copies, counts)
        self.processed += handed_on
        self.chained_in += handed_on

    @property
    def useful_s(self) -> Floats:
        """Time each replica was busy and not held up by a full queue downstream (DS2's useful time)."""
        share = 1.0 - self.blocked_s / self.service.total if self.service.total > 0.0 else 1.0
        return self.busy_s * max(0.0, share)

    def interarrival(self) -> tuple[float | None, float | None]:
        """Mean gap in seconds and the mean of the replicas' coefficients of variation."""
        count, total, squares = self.gaps
        seen = (count > 1) & (total > 0)
        if not seen.any():
            return None, None
        mean = total[seen] / count[seen]
        variance = np.maximum(0.0, squares[seen] / count[seen] - mean * mean)
        return float(total[seen].sum() / count[seen].sum()), float((np.sqrt(variance) / mean).mean())


@dataclass(frozen=True, slots=True)
class Served:
    """Parts whose service is scheduled: when each is complete, and sums over its items.

    `via` is the number of the stream each part came by; None when the task has one input.
    """

    via: NDArray[np.int8] | None
    complete: Floats
    items: Floats
    read_sum: Floats
    emit_sum: Floats
    ship_sum: Floats
    service_sum: Floats
    blocked_sum: Floats
    square_sum: Floats

    @classmethod
    def nothing(cls) -> Served:
        return cls(None, *(np.empty(0) for _ in range(8)))

    def only(self, index: Ints | Bools) -> Served:
        columns = [getattr(self, name)[index] for name in _COLUMNS]
        return Served(None if self.via is None else self.via[index], *columns)

    def then(self, later: Served) -> Served:
        if self.complete.size == 0:
            return later
        if later.complete.size == 0:
            return self
        columns = [np.concatenate([getattr(self, name), getattr(later, name)]) for name in _COLUMNS]
        vias = [part.via for part in (self, later) if part.via is not None]
        return Served(np.concatenate(vias) if vias else None, *columns)


_COLUMNS = [field.name for field in fields(Served) if field.name != "via"]


class Unfinished:
    """Parts whose service is scheduled but not finished; they count when they are finished, not before."""

    def __init__(self) -> None:
        self._open = Served.nothing()

    def book(self, scheduled: Served, horizon_s: float, meter: TaskMeter, *, own_latency: bool) -> None:
        """Enter new parts; count those finished by the horizon."""
        everything = self._open.then(scheduled)
        late = np.flatnonzero(everything.complete > horizon_s)
        self._open = everything.only(late)
        if late.size == everything.complete.size:
            return
        several = everything.via is not None
        done = everything.only(everything.complete <= horizon_s) if several else everything
        open_ = Served.nothing() if several else self._open
        items = done.items.sum() - open_.items.sum()
        service = done.service_sum.sum() - open_.service_sum.sum()
        read = done.read_sum.sum() - open_.read_sum.sum()
        meter.service.add(items, service, done.square_sum.sum() - open_.square_sum.sum())
        meter.blocked_s += float(done.blocked_sum.sum() - open_.blocked_sum.sum())
        meter.queue_wait.add(items, read - done.ship_sum.sum() + open_.ship_sum.sum())
        if own_latency:
            meter.latency.add(items, service)
        for number, stream in enumerate(meter.inputs):
            of = done.only(done.via == number) if done.via is not None else done
            items = of.items.sum() - open_.items.sum()
            emitted = of.emit_sum.sum() - open_.emit_sum.sum()
            stream.latency.add(items, of.read_sum.sum() - open_.read_sum.sum() - emitted)
            stream.batching.add(items, of.ship_sum.sum() - open_.ship_sum.sum() - emitted)

    def pause(self, duration_s: float) -> None:
        """Everything unfinished finishes later by as much, and is read later."""
        open_ = self._open
        read = open_.read_sum + duration_s * open_.items
        self._open = replace(open_, complete=open_.complete + duration_s, read_sum=read)

    @property
    def items(self) -> int:
        return int(self._open.items.sum())

    @property
    def oldest_s(self) -> float | None:
        """When the oldest of them was shipped."""
        open_ = self._open
        return float((open_.ship_sum / open_.items).min()) if open_.items.size else None
