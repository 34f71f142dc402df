"""The simulated engine: the controller's Engine port over a flow in motion."""

from __future__ import annotations

import copy
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from penstock.policy.held import Judge
from penstock.sim.actuator import Actuator, Change
from penstock.sim.cluster import Cluster
from penstock.sim.latencies import Latencies
from penstock.sim.network import Network
from penstock.sim.observation import snapshot_of
from penstock.sim.stage import Probe

if TYPE_CHECKING:
    from collections.abc import Mapping

    from penstock.policy.decision import Decision
    from penstock.sim.model import FlowModel
    from penstock.stats.snapshot import ConstraintSpec, Snapshot


@dataclass(frozen=True, slots=True)
class Interval:
    """What an outside observer saw in one interval, beyond the snapshot."""

    begin_s: float
    end_s: float
    snapshot: Snapshot
    p95_ms: dict[str, float | None]
    due: int
    emitted: float
    delivered: float
    cpu_share: float
    workers: float
    lost: int


class SimulatedEngine:
    """Runs a flow model for `seconds`; the same seed gives the same run."""

    def __init__(self, flow: FlowModel, seed: int = 0, seconds: float | None = None) -> None:
        self.flow = flow
        self.now_s = 0.0
        self.items = 0
        self.latencies = {constraint.name: Latencies() for constraint in flow.constraints}
        self.last: Interval | None = None
        self._until_s = flow.seconds if seconds is None else seconds
        self._network = Network(flow, np.random.Generator(np.random.SFC64(seed)))
        self._cluster = Cluster(flow.cluster, flow.tasks)
        self._actuator = Actuator(flow, self._cluster)
        self._interval_latencies: dict[str, Latencies] = {}
        self._losing_until_s = 0.0
        self._judge = Judge()

    @property
    def actions(self) -> int:
        """Changes of parallelism that were scheduled so far."""
        return self._actuator.actions

    @property
    def worker_hours(self) -> float:
        return self._cluster.worker_seconds / 3600.0

    @property
    def cpu_share(self) -> float:
        """Share of the leased cores that was used."""
        return self._cluster.busy_core_seconds / max(self._cluster.core_seconds, 1e-12)

    @property
    def items_inside(self) -> int:
        return self._network.items_inside()

    @property
    def lost(self) -> int:
        return sum(source.lost for source in self._network.sources.values())

    @property
    def source_backlog(self) -> int:
        return sum(source.backlog for source in self._network.sources.values())

    def apply(self, decision: Decision) -> None:
        """Lifetimes and chains hold from the next step on, numbers of replicas when they can."""
        for name, lifetime_ms in decision.batch_lifetime_ms.items():
            self._network.streams[name].lifetime_s = lifetime_ms / 1000.0
        if decision.chains:
            self._network.chain(decision.chains)
        self._actuator.want(decision.parallelism, self._network.replicas, self.now_s)

    def place(self, replicas: Mapping[str, int]) -> None:
        """These numbers of replicas from now on, at once: what a change would be that was decided in time."""
        changed = {name: n for name, n in replicas.items() if n != self._network.replicas[name]}
        if changed:
            self._network.change(Change(self.now_s, changed), self.now_s)

    def fork(self) -> SimulatedEngine:
        """The same flow at the same moment with the same luck to come, to be run on by itself."""
        flow = self.flow
        curves = [*(task.load for task in flow.tasks), *(stream.ratio for stream in flow.streams)]
        shared = [flow, flow.cluster, *flow.tasks, *flow.streams, *flow.constraints, *curves, self.last]
        return copy.deepcopy(self, {id(one): one for one in shared if one is not None})

    def boundary(self) -> None:
        """None ever: no batches are modelled, and a restart is a load that policies must cope with."""

    def observe(self) -> Snapshot | None:
        """Advance by one interval; None once the run has reached its end."""
        if self.now_s >= self._until_s - 1e-9:
            return None
        begin_s, end_s = self.now_s, min(self.now_s + self.flow.interval_s, self._until_s)
        self._network.new_interval()
        self._attach_probes()
        busy, cores, leased = (
            self._cluster.busy_core_seconds,
            self._cluster.core_seconds,
            self._cluster.worker_seconds,
        )
        while self.now_s < end_s - 1e-9:
            self._advance(self._step_end(end_s))
        length_s = end_s - begin_s
        cores_used = (self._cluster.busy_core_seconds - busy) / length_s
        cores_leased = (self._cluster.core_seconds - cores) / length_s
        snapshot = self._judge.judged(
            snapshot_of(
                self._network,
                length_s,
                self.now_s,
                latencies=self._interval_latencies,
                cores_used=cores_used,
                cores_leased=cores_leased,
            )
        )
        workers = (self._cluster.worker_seconds - leased) / length_s
        self._remember(begin_s, snapshot, cores_used / max(cores_leased, 1e-12), workers)
        return snapshot

    def _step_end(self, end_s: float) -> float:
        network, now = self._network, self.now_s
        rate = sum(source.rate_at(now) for source in network.sources.values())
        fanned = max(1.0, rate / self.flow.step_items * self.flow.step_s)
        ends = [end_s, now + self.flow.step_s / fanned, self._actuator.next_after(now)]
        ends += [source.next_change_after(now) for source in network.sources.values()]
        if self._losing_until_s > now:
            ends.append(self._losing_until_s)
        return min(end for end in ends if end > now + 1e-9)

    def _advance(self, end_s: float) -> None:
        network, begin_s = self._network, self.now_s
        for change in self._actuator.due(begin_s):
            if change.pause_s and self.flow.cluster.restart_loses:
                self._losing_until_s = begin_s + change.pause_s
                end_s = min(end_s, self._losing_until_s)
            elif change.pause_s:
                network.pause(change.pause_s, begin_s)
            network.change(change, begin_s)
        losing = begin_s < self._losing_until_s
        self._account(network.step(begin_s, end_s, losing=losing), end_s - begin_s)
        self.now_s = end_s

    def _account(self, busy_s: dict[str, np.ndarray], duration_s: float) -> None:
        slowdown = self._cluster.share_cores(self._network.replicas, busy_s, duration_s)
        for name, slow in slowdown.items():
            self._network.stage_of(name).slowdown = slow

    def _attach_probes(self) -> None:
        """Percentiles are taken where a constraint ends, for constraints that begin at a source's stream."""
        self._interval_latencies = {}
        for stage in self._network.stages.values():
            stage.probes = []
        for constraint in self.flow.constraints:
            place = _end_of(constraint)
            if place is None or constraint.sequence[0].partition("->")[0] not in self._network.sources:
                continue
            stream, when_finished = place
            stage = self._network.stages[stream.partition("->")[2]]
            via = [s.name for s in stage.inputs].index(stream)
            latencies = Latencies()
            self._interval_latencies[constraint.name] = latencies
            stage.probes.append(Probe(via, when_finished, latencies))

    def _remember(self, begin_s: float, snapshot: Snapshot, cpu_share: float, workers: float) -> None:
        for name, latencies in self._interval_latencies.items():
            self.latencies[name].merge(latencies)
        sources = [snapshot.tasks[name] for name in self._network.sources]
        sinks = [task for task in snapshot.tasks.values() if task.kind == "sink"]
        due = sum(source.due_in_interval for source in self._network.sources.values())
        emitted = sum(task.processed_total or 0.0 for task in sources)
        self.items += int(emitted)
        self.last = Interval(
            begin_s=begin_s,
            end_s=self.now_s,
            snapshot=snapshot,
            p95_ms={c.name: c.p95_ms for c in snapshot.constraints},
            due=due,
            emitted=emitted,
            delivered=sum(task.processed_total or 0.0 for task in sinks),
            cpu_share=cpu_share,
            workers=workers,
            lost=self.lost,
        )


def _end_of(constraint: ConstraintSpec) -> tuple[str, bool] | None:
    """The last stream of a constraint, and whether the task behind it belongs to the constraint."""
    last = constraint.sequence[-1]
    if "->" in last:
        return last, False
    streams = [element for element in constraint.sequence if "->" in element]
    return (streams[-1], True) if streams else None
