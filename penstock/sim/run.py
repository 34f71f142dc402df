"""A whole run: the controller on the simulated engine, and what came of it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from penstock.control.loop import Controller
from penstock.policy.measured import sequence_latency_ms
from penstock.sim.engine import Interval, SimulatedEngine

if TYPE_CHECKING:
    from collections.abc import Callable

    from penstock.control.recording import Recorder
    from penstock.policy.port import Policy
    from penstock.sim.model import FlowModel
    from penstock.stats.snapshot import Snapshot


@dataclass(frozen=True, slots=True)
class Point:
    """One interval of a run, as pictures and summaries need it."""

    begin_s: float
    end_s: float
    due_per_s: float
    emitted_per_s: float
    delivered_per_s: float
    latency_ms: dict[str, float | None]
    p95_ms: dict[str, float | None]
    held: dict[str, bool]
    replicas: dict[str, int]
    utilization: dict[str, float | None]
    cpu_share: float
    workers: float
    backlog: float
    chains: list[list[str]]


@dataclass(frozen=True, slots=True)
class Run:
    """Everything about a finished run."""

    flow: FlowModel
    policy: str
    seed: int
    points: list[Point]
    items: int
    lost: int
    left_inside: int
    left_at_source: int
    p95_ms: dict[str, float | None]
    worker_hours: float
    cpu_share: float
    actions: int


def simulate(
    flow: FlowModel,
    policy: Policy[Any],
    *,
    seed: int = 0,
    seconds: float | None = None,
    recorder: Recorder | None = None,
    each: Callable[[Point], None] | None = None,
) -> Run:
    """Run the flow under the policy; `each` is told about every interval as it ends."""
    engine = SimulatedEngine(flow, seed, seconds)
    controller = Controller(engine, policy, lambda: engine.now_s, recorder)
    points: list[Point] = []
    for _ in controller.cycles():
        assert engine.last is not None
        point = _point(engine.last)
        points.append(point)
        if each is not None:
            each(point)
    return Run(
        flow=flow,
        policy=policy.name,
        seed=seed,
        points=points,
        items=engine.items,
        lost=engine.lost,
        left_inside=engine.items_inside,
        left_at_source=engine.source_backlog,
        p95_ms={name: kept.quantile_ms(0.95) for name, kept in engine.latencies.items()},
        worker_hours=engine.worker_hours,
        cpu_share=engine.cpu_share,
        actions=engine.actions,
    )


def _point(interval: Interval) -> Point:
    snapshot: Snapshot = interval.snapshot
    length_s = interval.end_s - interval.begin_s
    elastic = {name: task for name, task in snapshot.tasks.items() if task.kind != "source"}
    return Point(
        begin_s=interval.begin_s,
        end_s=interval.end_s,
        due_per_s=interval.due / length_s,
        emitted_per_s=interval.emitted / length_s,
        delivered_per_s=interval.delivered / length_s,
        latency_ms={c.name: sequence_latency_ms(snapshot, c) for c in snapshot.constraints},
        p95_ms=interval.p95_ms,
        held={c.name: c.held is True for c in snapshot.constraints},
        replicas={name: task.parallelism for name, task in elastic.items()},
        utilization={name: task.utilization for name, task in elastic.items()},
        cpu_share=interval.cpu_share,
        workers=interval.workers,
        backlog=sum(task.backlog_total or 0.0 for task in snapshot.tasks.values()),
        chains=snapshot.chains,
    )
