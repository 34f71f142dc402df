"""A source in motion: items fall due on a schedule; its replicas can be slow or held up."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

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
        self._odd = np.empty(0)
        self._free_at = np.zeros(model.replicas)
        self._to_come = Emitted.nothing(model.replicas)

    def new_interval(self) -> None:
        self.meter = TaskMeter(self.replicas, 0)
        self.due_in_interval = 0

    @property
    def backlog(self) -> int:
        """Items that are due and not emitted."""
        return self._behind + self._odd.size + self._to_come.time.size

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
        due = np.concatenate([self._odd, due]) if self._odd.size else due
        work = max((self.model.service_s + self.shipping_s) * float(self.slowdown.mean()), self.pace_s)
        late = self._behind
        rows = (late + due.size) // self.replicas
        if work > 0.0:
            room = max(0.0, horizon_s - float(self._free_at.min()))
            rows = min(rows, int(room / work) + 2)
        take = rows * self.replicas
        from_late = min(late, take)
        now = due[: take - from_late]
        rest = due[now.size :]
        if rest.size < self.replicas:
            self._behind, self._odd = late - from_late, rest
        elif self.model.catches_up:
            self._behind, self._odd = late - from_late + rest.size, np.empty(0)
        else:
            self._odd = np.empty(0)
        fresh = Emitted.nothing(self.replicas)
        if rows:
            available = np.concatenate([np.full(from_late, begin_s), now]) if from_late else now
            fresh = self._departures(available.reshape(rows, self.replicas), work)
        emitted, self._to_come = leaving_by(horizon_s, self._to_come, fresh)
        self._book(emitted, work, horizon_s - begin_s)
        return emitted

    def _departures(self, available: Floats, work: float) -> Emitted:
        if work > 0.0:
            departure = equal_work_departures(available, work, self._free_at)
            self._free_at = departure[-1].copy()
        else:
            departure = np.maximum(available, self._free_at)
        time = departure.T.reshape(-1)
        return Emitted(time, time, np.full(self.replicas, available.shape[0], dtype=np.int64))

    def _book(self, emitted: Emitted, work: float, duration_s: float) -> None:
        own = (self.model.service_s + self.shipping_s) * float(self.slowdown.mean())
        self.meter.processed += emitted.counts
        self.meter.busy_s += np.minimum(emitted.counts * work, duration_s)
        self.meter.blocked_s += float(emitted.time.size * (work - own))
        items = float(emitted.time.size)
        self.meter.service.add(items, items * work, items * work * work)
        self.meter.latency.add(items, items * work)
