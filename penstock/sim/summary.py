"""What a run comes to: one line per constraint and one for the resources."""

from __future__ import annotations

import itertools
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from penstock.sim.run import Point, Run

# Replicas are "needed" at the load at which a task is this busy.
_NEEDED_UTILIZATION = 0.9


@dataclass(frozen=True, slots=True)
class ConstraintOutcome:
    """How a constraint was kept.

    Each interval is judged over the constraint's window that ends with it (policy/held.py). Settling time is
    the mean length of the episodes in which the bound was broken; where the sequence was not measured it
    counts as broken.
    """

    bound_ms: float
    share_held: float
    mean_ms: float | None
    p95_ms: float | None
    violated_s: float
    settling_s: float


@dataclass(frozen=True, slots=True)
class Summary:
    """A run in figures. Overshoot: most replicas over those needed at the peak load, less one."""

    flow: str
    policy: str
    seed: int
    simulated_s: float
    items: int
    lost: int
    processed_share: float
    constraints: dict[str, ConstraintOutcome]
    task_hours: dict[str, float]
    worker_hours: float
    cpu_share: float
    actions: int
    overshoot: float | None


def summarise(run: Run) -> Summary:
    """The figures of a run."""
    elastic = [task.name for task in run.flow.tasks if task.elastic]
    due = sum(point.due_per_s * _length(point) for point in run.points)
    left = run.lost + run.left_at_source + run.left_inside
    return Summary(
        flow=run.flow.name,
        policy=run.policy,
        seed=run.seed,
        simulated_s=run.points[-1].end_s if run.points else 0.0,
        items=run.items,
        lost=run.lost,
        processed_share=max(0.0, 1.0 - left / due) if due else 0.0,
        constraints={c.name: _outcome(run, c.name, c.latency_ms) for c in run.flow.constraints},
        task_hours={
            name: sum(p.replicas[name] * _length(p) for p in run.points) / 3600.0 for name in elastic
        },
        worker_hours=run.worker_hours,
        cpu_share=run.cpu_share,
        actions=run.actions,
        overshoot=_overshoot(run, elastic),
    )


def _length(point: Point) -> float:
    return point.end_s - point.begin_s


def _outcome(run: Run, name: str, bound_ms: float) -> ConstraintOutcome:
    means = [point.latency_ms[name] for point in run.points]
    held = [point.held[name] for point in run.points]
    known = [mean for mean in means if mean is not None]
    broken_s = [
        sum(_length(point) for point, _ in episode)
        for kept, episode in itertools.groupby(zip(run.points, held, strict=True), key=lambda pair: pair[1])
        if not kept
    ]
    return ConstraintOutcome(
        bound_ms=bound_ms,
        share_held=sum(held) / len(held) if held else 0.0,
        mean_ms=float(np.mean(known)) if known else None,
        p95_ms=run.p95_ms.get(name),
        violated_s=float(sum(broken_s)),
        settling_s=float(np.mean(broken_s)) if broken_s else 0.0,
    )


def _overshoot(run: Run, elastic: list[str]) -> float | None:
    needed, most = 0.0, 0
    for name in elastic:
        busy = [(point.utilization[name] or 0.0) * point.replicas[name] for point in run.points]
        needed += max(1.0, max(busy, default=0.0) / _NEEDED_UTILIZATION)
        most += max((point.replicas[name] for point in run.points), default=0)
    return most / needed - 1.0 if elastic else None
