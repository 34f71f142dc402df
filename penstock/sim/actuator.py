"""Changes on their way: a decision takes effect when a real engine could have carried it out."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping

    from penstock.sim.cluster import Cluster
    from penstock.sim.model import ClusterModel, FlowModel


@dataclass(frozen=True, slots=True)
class Change:
    """New numbers of replicas from `at_s` on; with `pause_s` the flow stands still for that long first."""

    at_s: float
    replicas: dict[str, int]
    pause_s: float = 0.0


class Actuator:
    """Turns wanted numbers of replicas into changes with a time."""

    def __init__(self, flow: FlowModel, cluster: Cluster) -> None:
        self._flow = flow
        self._model: ClusterModel = flow.cluster
        self._cluster = cluster
        self._pending: list[Change] = []
        self.actions = 0

    def want(self, wanted: Mapping[str, int], current: dict[str, int], now_s: float) -> None:
        """Schedule what differs from the current numbers; it replaces what was scheduled before."""
        changed = {}
        for name, replicas in wanted.items():
            low, high = self._flow.task(name).bounds
            target = min(max(replicas, low), high)
            if target != current[name]:
                changed[name] = target
        pending = {name: n for change in self._pending for name, n in change.replicas.items()}
        if changed == pending:
            return
        self._pending = []
        if not changed:
            return
        self.actions += len(changed)
        if self._model.restart_s is not None:
            self._pending = [Change(now_s, changed, self._model.restart_s)]
            return
        down = {name: n for name, n in changed.items() if n < current[name]}
        up = {name: n for name, n in changed.items() if n > current[name]}
        if down:
            self._pending.append(Change(now_s, down))
        if up:
            self._pending.append(Change(now_s + self._start_delay_s(up, current), up))

    def _start_delay_s(self, up: dict[str, int], current: dict[str, int]) -> float:
        after = {**current, **up}
        sites = {self._flow.task(name).site for name in up}
        new_workers = any(self._cluster.workers(s, after) > self._cluster.workers(s, current) for s in sites)
        return self._model.replica_start_s + (self._model.worker_start_s if new_workers else 0.0)

    def due(self, now_s: float) -> list[Change]:
        """Changes that take effect now."""
        ready = [change for change in self._pending if change.at_s <= now_s]
        self._pending = [change for change in self._pending if change.at_s > now_s]
        return ready

    def next_after(self, now_s: float) -> float:
        return min((change.at_s for change in self._pending if change.at_s > now_s), default=math.inf)
