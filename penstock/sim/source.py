"""A source in motion: items fall due on a schedule; its replicas can be slow or held up."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from penstock.sim.arrays import fitted
from penstock.sim.lindley import equal_work_departures
from penstock.sim.load import DueTimes
from penstock.sim.meters import TaskMeter
from penstock.sim.parts import Emitted, leaving_by

if TYPE_CHECKING:
    from penstock.sim.arrays import Floats
    from penstock.sim.model import TaskModel


class SourceStage:
    """Item k of the schedule belongs to replica k mod replicas; a replica emits one item at a time.

    What cannot be emitted in time is only counted (memory stays bounded however far the source falls behind)
    and emitted as soon as the replicas get to it.
    """

    def __init__(self, model: TaskModel, rng: np.random.Generator) -> None:
        assert model.load is not None
        self.model = model
        self.replicas = model.replicas
        self.slowdown = np.ones(model.replicas)
        self.shipping_s = 0.0
        self.pace_s = 0.0
        self.meter = TaskMeter(model.replicas, 0)
        self.due_in_interval = 0
        self.lost = 0
        self._load = model.load
        self._due = DueTimes(model.load, model.gaps, rng)
        self._behind = 0
        self._paused_until = 0.0
        self._turn = 0
        self._free_at = np.zeros(model.replicas)
        self._to_come = Emitted.nothing(model.replicas)

    def new_interval(self) -> None:
        self.meter = TaskMeter(self.replicas, 0)
        self.due_in_interval = 0

    def resize(self, replicas: int, now_s: float) -> None:
        """Change the number of replicas; what one that goes has in hand is left to those that stay."""
        self.meter.resize(replicas)
        self._to_come = self._to_come.reassigned(self._to_come.replicas() % replicas, replicas)
        self._free_at = fitted(self._free_at, replicas, now_s)
        self.slowdown = fitted(self.slowdown, replicas, 1.0)
        self._turn = 0
        self.replicas = replicas

    @property
    def backlog(self) -> int:
        """Items that are due and not emitted."""
        return self._behind + self._to_come.time.size

    def next_change_after(self, time_s: float) -> float:
        return self._load.next_change_after(time_s)

    def rate_at(self, time_s: float) -> float:
        return self._load.at(time_s)

    def pause(self, duration_s: float, now_s: float) -> None:
        """Nothing is emitted for a while; due items wait, or are never made."""
        self._paused_until = now_s + duration_s
        self._free_at = np.maximum(self._free_at, now_s) + duration_s

    def _sleep(self, begin_s: float, end_s: float) -> float:
        """Make nothing until `end_s`; the items still count as due."""
        self.due_in_interval += self._due.until(begin_s, end_s).size
        return end_s

    def lose(self, begin_s: float, end_s: float) -> Emitted:
        """Emit nothing; what is due now is lost."""
        gone = self._due.until(begin_s, end_s).size
        self.due_in_interval += gone
        self.lost += gone
        return Emitted.nothing(self.replicas)

    def emit(self, begin_s: float, horizon_s: float) -> Emitted:
        """What the replicas emit until the horizon."""
        if not self.model.catches_up and begin_s < self._paused_until:
            begin_s = self._sleep(begin_s, min(horizon_s, self._paused_until))
        due = self._due.until(begin_s, horizon_s)
        self.due_in_interval += due.size
        work = max((self.model.service_s + self.shipping_s) * float(self.slowdown.mean()), self.pace_s)
        take = self._behind + due.size
        if work > 0.0:
            room = max(0.0, horizon_s - float(self._free_at.min()))
            take = min(take, (int(room / work) + 2) * self.replicas)
        late = min(self._behind, take)
        now = due[: take - late]
        self._behind -= late
        if self.model.catches_up:
            self._behind += due.size - now.size
        fresh = Emitted.nothing(self.replicas)
        if take:
            fresh = self._departures(np.concatenate([np.full(late, begin_s), now]) if late else now, work)
        emitted, self._to_come = leaving_by(horizon_s, self._to_come, fresh)
        self._book(emitted, work, horizon_s - begin_s)
        return emitted

    def _departures(self, available: Floats, work: float) -> Emitted:
        """When the replicas, taking turns from where they stopped, emit items available at these times."""
        turns = -(-available.size // self.replicas)
        left_over = turns * self.replicas - available.size
        table = np.concatenate([available, np.full(left_over, np.inf)]).reshape(turns, self.replicas)
        order = np.roll(np.arange(self.replicas), -self._turn)
        if work > 0.0:
            departure = equal_work_departures(table, work, self._free_at[order])
        else:
            departure = np.maximum(table, self._free_at[order])
        column = np.argsort(order)
        counts = np.full(self.replicas, turns, dtype=np.int64)
        counts[order[self.replicas - left_over :]] -= 1
        by_replica = departure.T
        time = np.concatenate([by_replica[column[i], : counts[i]] for i in range(self.replicas)])
        used = counts > 0
        self._free_at[used] = by_replica[column[used], counts[used] - 1]
        self._turn = (self._turn + available.size) % self.replicas
        return Emitted(time, time, counts)

    def _book(self, emitted: Emitted, work: float, duration_s: float) -> None:
        own = (self.model.service_s + self.shipping_s) * float(self.slowdown.mean())
        self.meter.processed += emitted.counts
        self.meter.busy_s += np.minimum(emitted.counts * work, duration_s)
        self.meter.blocked_s += float(emitted.time.size * (work - own))
        items = float(emitted.time.size)
        self.meter.service.add(items, items * work, items * work * work)
        self.meter.latency.add(items, items * work)
