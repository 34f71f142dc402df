"""How many replicas an elastic source needs: it is never read by more than one for each of its splits.

    busy replicas = (rate that arrives + lag / catch_up) / items a replica reads in a second of useful time

Splits go to other replicas at a boundary, for which the whole flow stands still. So there is a band in which
nothing changes. Replicas are added where each would be busy for more than `FULL` of its time, until each is
busy for `WELL_USED` of it. They are taken away only if each of the others is busy for no more than `IDLE` of
its time: as IDLE < WELL_USED, a change is never taken back under the same load. While a source is to drain a
backlog, none is taken away.
"""

import math
from collections.abc import Collection
from dataclasses import dataclass, field
from typing import Final

from penstock.policy.catch_up import Backlog
from penstock.policy.decision import Reason
from penstock.policy.ds2_rates import true_rates
from penstock.policy.measured import finite
from penstock.policy.scaling_model import LARGEST
from penstock.stats.snapshot import Snapshot, TaskStats

RULE: Final = "source"
FULL: Final = 0.85
WELL_USED: Final = 0.7
IDLE: Final = 0.5

_ROUNDING = 1e-6


@dataclass(slots=True)
class SourcePlan:
    """The replicas of every elastic source, and why; not feasible if one would need more than it may have."""

    replicas: dict[str, int] = field(default_factory=dict)
    reasons: list[Reason] = field(default_factory=list)
    feasible: bool = True


def scale_sources(snapshot: Snapshot, drained: Collection[Backlog], factor: float = 1.0) -> SourcePlan:
    """For what arrives and what is to be drained, `factor` times as much of it."""
    more_per_s = {one.source: one.more_per_s for one in drained}
    plan = SourcePlan()
    for name, task in snapshot.elastic_tasks().items():
        if task.kind == "source":
            _scale(plan, name, task, more_per_s.get(name), factor)
    return plan


def _scale(plan: SourcePlan, name: str, task: TaskStats, more_per_s: float | None, factor: float) -> None:
    now, each_per_s = task.parallelism, _each_per_s(task)
    arrives_per_s = finite(task.rate_total)
    plan.replicas[name] = now
    if arrives_per_s is None or each_per_s is None:
        why = f"how much arrives at {name}, or a replica of it can read, was not measured; its replicas stay"
        plan.reasons.append(Reason(rule=RULE, task=name, before=now, after=now, why=why))
        return
    target_per_s = (arrives_per_s + (more_per_s or 0.0)) * factor
    busy = target_per_s / each_per_s
    wanted = _wanted(busy, now, keeps=more_per_s is not None)
    after = plan.replicas[name] = task.within_limits(wanted)
    plan.feasible &= busy <= after
    plan.reasons.append(
        Reason(
            rule=RULE,
            task=name,
            before=now,
            after=after,
            inputs={"target_per_s": target_per_s, "each_per_s": each_per_s, "max": task.max},
            prediction={"utilization": busy / after},
            why=_why(name, target_per_s, each_per_s, busy, now, wanted, after),
        )
    )


def _each_per_s(task: TaskStats) -> float | None:
    """What a replica that waits for nothing reads in a second."""
    processing_per_s = true_rates(task).processing_per_s
    return finite(processing_per_s / task.parallelism) if processing_per_s else None


def _wanted(busy: float, now: int, *, keeps: bool) -> int:
    if busy > FULL * now * (1 + _ROUNDING):
        return _replicas(busy / WELL_USED)
    fewer = _replicas(busy / IDLE)
    return now if keeps else min(now, fewer)


def _replicas(exact: float) -> int:
    return max(1, math.ceil(min(exact, LARGEST) * (1 - _ROUNDING)))


def _why(
    name: str, target_per_s: float, each_per_s: float, busy: float, now: int, wanted: int, after: int
) -> str:
    seen = f"{name} must read {target_per_s:.6g} items/s and a replica can read {each_per_s:.6g}"
    if busy > after:
        return f"{seen}: {wanted} needed, and it may have {after}, so that it falls behind"
    if wanted > after:
        return f"{seen}: {after}, which is all it may have, are busy for {busy / after:.0%} of their time"
    if after == now:
        return f"{seen}: {now} are busy for {busy / now:.0%} of their time, which is not worth a boundary"
    return f"{seen}: {after} are busy for {busy / after:.0%} of their time, {now} for {busy / now:.0%}"
