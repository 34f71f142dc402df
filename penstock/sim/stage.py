"""A task in motion: one FIFO queue per replica, exact service, and what it emits."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from penstock.sim.aggregate import (
    group_copies,
    meter_groups,
    next_tick,
    one_per_window,
    opens_window,
    random_member,
)
from penstock.sim.arrays import Floats, Ints, fitted, starts_of
from penstock.sim.arrivals import Arrivals, in_service_order
from penstock.sim.lindley import start_times
from penstock.sim.meters import Served, TaskMeter, Unfinished
from penstock.sim.parts import Emitted, Parts, leaving_by

if TYPE_CHECKING:
    from penstock.sim.chain import Chain
    from penstock.sim.latencies import Latencies
    from penstock.sim.model import StreamModel, TaskModel

# At most so many latencies per step enter a histogram; they are taken evenly from all items.
_SAMPLES_PER_STEP = 20_000


@dataclass(frozen=True, slots=True)
class Probe:
    """Where a constraint ends: at the reading (or the finishing) of items that came by one stream."""

    via: int
    when_finished: bool
    latencies: Latencies


@dataclass(frozen=True, slots=True)
class Scheduled:
    """Service of one step's arrivals; `shares` is how the work divides over the tasks of a chain."""

    items: Emitted
    booked: Served
    work: Floats
    shares: list[float]


class Stage:
    """State of one task: when each replica is free, what is in service, and the meter of this interval."""

    def __init__(self, model: TaskModel, inputs: list[StreamModel], rng: np.random.Generator) -> None:
        self.model = model
        self.inputs = inputs
        self.replicas = model.replicas
        self.slowdown = np.ones(model.replicas)
        self.shipping_s = 0.0
        self.receiving_s = np.array([stream.costs.receive_item_s for stream in inputs])
        self.pace_s = 0.0
        self.probes: list[Probe] = []
        self.group_filled = np.zeros(model.replicas, dtype=np.int64)
        self.mean_work_s = model.service_s
        self.meter = TaskMeter(model.replicas, len(inputs))
        self._rng = rng
        self._free_at = np.zeros(model.replicas)
        self._paused_until = 0.0
        self._last_arrival = np.zeros(model.replicas)
        self._last_tick = np.zeros(model.replicas)
        self._in_service = Emitted.nothing(model.replicas)
        self._unfinished = Unfinished()

    def resize(self, replicas: int, now_s: float) -> None:
        """Change the number of replicas; a replica that goes still finishes what it has."""
        self.meter.resize(replicas)
        self._in_service = self._in_service.reassigned(self._in_service.replicas() % replicas, replicas)
        self._free_at = fitted(self._free_at, replicas, now_s)
        self._last_arrival = fitted(self._last_arrival, replicas, now_s)
        self.slowdown = fitted(self.slowdown, replicas, 1.0)
        self.group_filled = np.zeros(replicas, dtype=np.int64)
        self._last_tick = fitted(self._last_tick, replicas)
        self.replicas = replicas

    def new_interval(self) -> None:
        self.meter = TaskMeter(self.replicas, len(self.inputs))

    @property
    def backlog(self) -> int:
        """Items that have arrived and are not finished; what waits for a window's end is finished."""
        return self._unfinished.items if self.model.every_s is not None else self._in_service.time.size

    @property
    def oldest_s(self) -> float | None:
        """When the oldest of those came; None without any."""
        return self._unfinished.oldest_s

    @property
    def waiting(self) -> Ints:
        """The same per replica; nothing for a task that keeps items for a window."""
        return (
            self._in_service.counts if self.model.every_s is None else np.zeros_like(self._in_service.counts)
        )

    def pause(self, duration_s: float, now_s: float) -> None:
        """Nothing is served for a while."""
        self._free_at = np.maximum(self._free_at, now_s) + duration_s
        self._paused_until = now_s + duration_s
        self._in_service = replace(self._in_service, time=self._in_service.time + duration_s)
        self._unfinished.pause(duration_s)

    def draw(self, items: int) -> Floats:
        """Seconds of this task's own work on so many items, shipping included, receiving not."""
        service = self.model.service.sample(self._rng, items)
        service *= self.model.service_s
        service += self.shipping_s
        return service

    def serve(self, arrived: list[Parts], begin_s: float, horizon_s: float, chain: Chain | None) -> Emitted:
        """Serve what arrives until the horizon; return what is finished by then, as it leaves the task."""
        work = self._work_left(begin_s)
        scheduled = None
        if any(parts.size.size for parts in arrived):
            scheduled = self._schedule(in_service_order(arrived, self.inputs), begin_s, chain)
            work += scheduled.work
        work -= self._work_left(horizon_s)
        # Rounding may leave an idle replica a hair below nothing.
        np.maximum(work, 0.0, out=work)
        booked = Served.nothing() if scheduled is None else scheduled.booked
        self._unfinished.book(booked, horizon_s, self.meter, own_latency=not self.model.aggregates)
        self._book_busy(work, scheduled, chain)
        fresh = Emitted.nothing(self.replicas) if scheduled is None else scheduled.items
        return self._finish(fresh, horizon_s)

    def _work_left(self, time_s: float) -> Floats:
        """Seconds of work each replica has in hand; none of it is done while the flow is paused."""
        return np.maximum(0.0, self._free_at - max(time_s, self._paused_until))

    def _book_busy(self, work: Floats, scheduled: Scheduled | None, chain: Chain | None) -> None:
        shares = [1.0] if scheduled is None else scheduled.shares
        stages = [self, *(chain.later if chain and len(shares) > 1 else ())]
        for stage, share in zip(stages, shares, strict=True):
            stage.meter.busy_s += work * share

    def _schedule(self, arrivals: Arrivals, now_s: float, chain: Chain | None) -> Scheduled:
        size, receiver = arrivals.size, arrivals.receiver
        counts = np.zeros(self.replicas, dtype=np.int64)
        counts[arrivals.servers] = np.add.reduceat(size, arrivals.first)
        service = self.draw(int(size.sum()))
        service += self.receiving_s[0] if arrivals.item_via is None else self.receiving_s[arrivals.item_via]
        own, shares, copies, followed = service, [1.0], None, None
        if self.model.group > 1 or chain is not None:
            copies = np.ones(service.size, dtype=np.int64)
            if self.model.group > 1:
                copies = group_copies(copies, counts, self.group_filled, self.model.group)
        if chain is not None and copies is not None:
            followed = chain.follow(copies, counts, now_s, self._rng)
            copies = followed.leaving
            service = own + followed.work
            all_work = max(float(service.sum()), 1e-300)
            shares = [float(own.sum()) / all_work, *(total / all_work for total in followed.work_of_task)]
        slow = self.slowdown[receiver]
        if slow.max() > 1.0:
            service = service * np.repeat(slow, size)
        self.mean_work_s = float(own.mean()) + float(arrivals.opening_s.sum()) / own.size
        held_up = None
        if self.pace_s > 0.0:
            paced = np.maximum(service, self.pace_s)
            held_up, service = paced - service, paced

        first_item = starts_of(size)
        opening = arrivals.opening_s * slow
        # Opening an envelope is work on its first item.
        service[first_item] += opening
        done = np.cumsum(service)
        upto = done[first_item + size - 1]
        before = done[first_item] - service[first_item]
        work = upto - before
        start = start_times(arrivals.arrival, work, arrivals.first, self._free_at[arrivals.servers])
        done += np.repeat(start - before, size)
        complete = start + work
        self._free_at[arrivals.servers] = complete[arrivals.last]

        own_sum, own_squares = work, float(np.square(service).sum())
        if chain is not None:
            own_sum, own_squares = np.add.reduceat(own, first_item) + opening, float(np.square(own).sum())
        booked = Served(
            complete=complete,
            items=size.astype(np.float64),
            read_sum=np.add.reduceat(done, first_item) - work,
            emit_sum=arrivals.emit_sum,
            ship_sum=arrivals.ships_at * size,
            service_sum=own_sum,
            blocked_sum=np.zeros(size.size) if held_up is None else np.add.reduceat(held_up, first_item),
            square_sum=np.asarray(size * (own_squares / service.size), dtype=np.float64),
            via=arrivals.via,
        )
        self._count_gaps(arrivals)
        self._probe(done, service, arrivals)
        if followed is not None:
            followed.meter_groups(done, counts)
        items = self._leaving(done, service, arrivals, counts, copies)
        if chain is not None and chain.group > 1:
            items = replace(items, origin=random_member(items.origin, counts, chain.group, self._rng))
        served = np.zeros(self.replicas)
        served[arrivals.servers] = np.add.reduceat(work, arrivals.first)
        return Scheduled(items, booked, served, shares)

    def _leaving(
        self, done: Floats, service: Floats, arrivals: Arrivals, counts: Ints, copies: Ints | None
    ) -> Emitted:
        """The served items with the times at which they, or what is made of them, leave."""
        model, origin, latency = self.model, arrivals.origin, self.meter.latency
        if model.group > 1 and copies is not None:
            meter_groups(done - service, done, copies, counts, model.group, latency)
            origin = random_member(origin, counts, model.group, self._rng)
        elif model.every_s is not None:
            tick = next_tick(done, counts, model.every_s)
            opens = opens_window(tick, counts, self._last_tick)
            latency.add(float(opens.size), float((tick - done + service)[opens].sum()))
            done = tick
        return Emitted(done, origin, counts, arrivals.item_via, copies)

    def _finish(self, fresh: Emitted, horizon_s: float) -> Emitted:
        finished, self._in_service = leaving_by(horizon_s, self._in_service, fresh)
        self.meter.processed += finished.counts
        if self.model.every_s is not None:
            return one_per_window(finished)
        return finished if finished.copies is None else finished.repeated(finished.copies)

    def _count_gaps(self, arrivals: Arrivals) -> None:
        """Items of an envelope arrive together: the first carries the gap, the others a gap of zero."""
        gap = np.diff(arrivals.arrival, prepend=0.0)
        gap[arrivals.first] = arrivals.arrival[arrivals.first] - self._last_arrival[arrivals.servers]
        np.maximum(gap, 0.0, out=gap)
        self._last_arrival[arrivals.servers] = arrivals.arrival[arrivals.last]
        for row, weights in enumerate((arrivals.size, gap, gap * gap)):
            self.meter.gaps[row, arrivals.servers] += np.add.reduceat(weights, arrivals.first)

    def _probe(self, done: Floats, service: Floats, arrivals: Arrivals) -> None:
        for probe in self.probes:
            every = 1 + done.size // _SAMPLES_PER_STEP
            latency = done[::every] - arrivals.origin[::every]
            if not probe.when_finished:
                latency -= service[::every]
            if arrivals.item_via is not None:
                latency = latency[arrivals.item_via[::every] == probe.via]
            probe.latencies.add(latency)
