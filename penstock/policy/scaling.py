"""ScaleReactively: how many replicas every constrained task gets (thesis, algorithm 8).

For each constraint in turn: ResolveBottlenecks if its sequence has a bottleneck, otherwise Rebalance within

    limit = (1 - w_ob) (bound - sum of task latencies)                      (4.9; `thesis`)
    limit = 0.9 (1 - w_ob) (bound - sum of task latencies) / streams        (public code; `public_code`)

starting from the minima, from the replicas earlier constraints asked for, and from the smallest number whose
utilization stays below `utilization_max` (section 4.6.4). With the first limit batching and queues may use
up the whole bound, and transport comes on top; the second leaves a margin. Where batching yields a share y to
the queues (batching.py), (1 - y) w_ob takes the place of w_ob. A chain counts as one server
(scaling_chains.py); its later tasks follow the first, since forward streams join them.
"""

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Literal

from penstock.policy.decision import Evidence, Reason
from penstock.policy.experience import RULE, Experiences, experience, fewest_enough
from penstock.policy.measured import finite, queue_wait_ms, task_latency_ms, utilization
from penstock.policy.scaling_bottlenecks import is_bottleneck, resolved_parallelism
from penstock.policy.scaling_chains import as_served, heads
from penstock.policy.scaling_model import FitLimits, QueueWait, fit_queue_wait, fixed_queue_wait
from penstock.policy.scaling_rebalance import Candidate, Rebalanced, Step, rebalance
from penstock.stats.snapshot import ConstraintSpec, Snapshot, TaskStats

QueueLimit = Literal["thesis", "public_code"]

PUBLIC_CODE_SHARE = 0.9


@dataclass(frozen=True, slots=True)
class ScalingRules:
    """The constants of elastic scaling."""

    batching_weight: float = 0.8
    batching_yield: float = 0.0
    utilization_max: float = 0.9
    bottleneck_utilization: float = 0.99
    fit_limits: FitLimits | None = None
    step: Step = "variable"
    queue_limit: QueueLimit = "thesis"

    def queue_limit_ms(self, constraint: ConstraintSpec, task_latency_ms: float) -> float:
        """How long the items of a constraint may wait in queues, all its tasks together."""
        batching = (1 - self.batching_yield) * self.batching_weight
        left_ms = (1 - batching) * (constraint.latency_ms - task_latency_ms)
        if self.queue_limit == "thesis":
            return left_ms
        return PUBLIC_CODE_SHARE * left_ms / max(1, len(constraint.streams()))


@dataclass(slots=True)
class Scaling:
    """What ScaleReactively asks for: replicas of the tasks it has an opinion on, and why."""

    replicas: dict[str, int] = field(default_factory=dict)
    reasons: list[Reason] = field(default_factory=list)
    infeasible: set[str] = field(default_factory=set)
    """The constraints that no number of replicas would keep."""
    bottlenecks: set[str] = field(default_factory=set)
    """The tasks that were found to be one."""


class _UnknownError(Exception):
    """A number the model needs was not measured."""


def scale_reactively(snapshot: Snapshot, rules: ScalingRules, known: Experiences | None = None) -> Scaling:
    """The replicas for all constraints together; a constraint with missing data asks for nothing.

    Experiences that are `known`, those of this snapshot among them, may show that fewer are enough.
    """
    scaling = Scaling()
    snapshot, head_of = as_served(snapshot), heads(snapshot)
    for constraint in snapshot.constraints:
        names = list(dict.fromkeys(constraint.tasks()))
        bottlenecks = [
            name
            for name in dict.fromkeys(head_of.get(name, name) for name in names)
            if is_bottleneck(snapshot.tasks[name], rules.bottleneck_utilization)
        ]
        if bottlenecks:
            _resolve(snapshot, constraint, bottlenecks, scaling)
            continue
        try:
            _rebalance(snapshot, constraint, names, rules, scaling, known or {}, head_of)
        except _UnknownError as unknown:
            why = f"{unknown} was not measured, so nothing is scaled for {constraint.name}"
            scaling.reasons.append(Reason(rule="unknown", constraint=constraint.name, why=why))
    return scaling


def _resolve(
    snapshot: Snapshot, constraint: ConstraintSpec, bottlenecks: list[str], scaling: Scaling
) -> None:
    for name in bottlenecks:
        task = snapshot.tasks[name]
        wanted = resolved_parallelism(task)
        load = utilization(task) or 0.0
        scaling.bottlenecks.add(name)
        if wanted == task.parallelism:
            scaling.infeasible.add(constraint.name)
            limit = f"its maximum of {task.max}" if task.elastic else "a fixed number of replicas"
            why = f"{name} is a bottleneck (utilization {load:.2f}) and has {limit}: scaling cannot help"
        else:
            why = f"{name} is a bottleneck (utilization {load:.2f}): at least twice the replicas"
        scaling.replicas[name] = max(wanted, scaling.replicas.get(name, 0))
        scaling.reasons.append(
            Reason(
                rule="resolve_bottlenecks",
                constraint=constraint.name,
                task=name,
                before=task.parallelism,
                after=scaling.replicas[name],
                inputs={"utilization": load},
                prediction={"utilization": load * task.parallelism / wanted},
                why=why,
            )
        )


def _rebalance(
    snapshot: Snapshot,
    constraint: ConstraintSpec,
    names: list[str],
    rules: ScalingRules,
    scaling: Scaling,
    known: Experiences,
    head_of: Mapping[str, str],
) -> None:
    """Tasks in the process of another (`head_of`) add their latency; what has a queue is the other one."""
    latency_ms = sum(_needed(task_latency_ms(snapshot.tasks[n]), n, "latency_ms") for n in names)
    limit_ms = rules.queue_limit_ms(constraint, latency_ms)
    queues = [name for name in names if name not in head_of]
    waits_ms = {name: _needed(queue_wait_ms(snapshot, name), name, "queue_wait_ms") for name in queues}
    tasks = {
        name: _candidate(snapshot.tasks[name], name, rules, wait_ms, scaling.replicas.get(name, 1))
        for name, wait_ms in waits_ms.items()
    }
    result = rebalance(tasks, limit_ms, rules.step)
    summary: Evidence = {"queue_wait_ms": result.wait_ms, "queue_wait_limit_ms": limit_ms}
    for name in queues:
        task = snapshot.tasks[name]
        if not task.elastic:
            continue
        scaling.replicas[name] = result.replicas[name]
        scaling.reasons.append(
            Reason(
                rule="rebalance",
                constraint=constraint.name,
                task=name,
                before=task.parallelism,
                after=result.replicas[name],
                inputs=_inputs(snapshot, name, tasks[name].model),
                prediction={
                    **summary,
                    "task_queue_wait_ms": tasks[name].model.wait_ms(result.replicas[name]),
                },
                why=_why(constraint, name, limit_ms, feasible=result.feasible),
            )
        )
    if not result.feasible:
        scaling.infeasible.add(constraint.name)
        scaling.reasons.append(
            Reason(
                rule="infeasible",
                constraint=constraint.name,
                prediction=summary,
                why=f"with all the replicas it may have {constraint.name} would still queue"
                f" {result.wait_ms:.3g} ms, more than {limit_ms:.3g} ms: relax it or allow more replicas",
            )
        )
    elif math.fsum(waits_ms.values()) <= limit_ms:
        for name, replicas, reason in _by_experience(snapshot, constraint, known, tasks, result, limit_ms):
            scaling.replicas[name] = replicas
            scaling.reasons.append(reason)


def _by_experience(
    snapshot: Snapshot,
    constraint: ConstraintSpec,
    known: Experiences,
    tasks: Mapping[str, Candidate],
    result: Rebalanced,
    limit_ms: float,
) -> Iterator[tuple[str, int, Reason]]:
    """The tasks of which fewer replicas have been seen to be enough: how many, and why.

    Fewer than the model wants, or as few as it wants if that is fewer than there are. A queue that gets
    longer that way leaves less of the limit to the tasks after it.
    """
    total_ms = result.wait_ms
    for name, task in tasks.items():
        now, wanted = experience(snapshot, name), result.replicas[name]
        if now is None:
            continue
        others_ms = total_ms - task.model.wait_ms(wanted)
        fewer = range(task.start(), wanted + 1 if wanted < now.replicas else wanted)
        seen = fewest_enough(known.get(name, ()), fewer, now.rate_per_s, limit_ms - others_ms)
        if seen is None:
            continue
        total_ms = others_ms + seen.wait_ms
        reason = Reason(
            rule=RULE,
            constraint=constraint.name,
            task=name,
            before=now.replicas,
            after=seen.replicas,
            prediction={"queue_wait_ms": total_ms, "queue_wait_limit_ms": limit_ms},
            why=f"{seen.replicas} were enough before: {name} queued {seen.wait_ms:.3g} ms"
            f" at {seen.rate_per_s:.0f} items/s, and {now.rate_per_s:.0f} come now",
        )
        yield name, seen.replicas, reason


def _why(constraint: ConstraintSpec, name: str, limit_ms: float, *, feasible: bool) -> str:
    if feasible:
        return f"the fewest replicas that keep the queues of {constraint.name} within {limit_ms:.3g} ms"
    return f"{constraint.name} cannot be kept: {name} gets all the replicas it may have"


def _candidate(
    task: TaskStats, name: str, rules: ScalingRules, wait_ms: float, asked_before: int
) -> Candidate:
    if not task.elastic:
        return Candidate(fixed_queue_wait(wait_ms), 1, 1)
    model = _model(task, name, wait_ms, rules.fit_limits)
    fewest = max(task.min, asked_before, model.replicas_for_utilization(rules.utilization_max))
    return Candidate(model, task.within_limits(fewest), task.max)


def _model(task: TaskStats, name: str, wait_ms: float, limits: FitLimits | None) -> QueueWait:
    interarrival_ms = _needed(task.interarrival_ms, name, "interarrival_ms")
    if interarrival_ms <= 0:
        raise _UnknownError(f"{name}.interarrival_ms (it is 0)")
    model = fit_queue_wait(
        service_ms=_needed(task.service_ms, name, "service_ms"),
        interarrival_ms=interarrival_ms,
        service_cv=_needed(task.service_cv, name, "service_cv"),
        interarrival_cv=_needed(task.interarrival_cv, name, "interarrival_cv"),
        queue_wait_ms=wait_ms,
        replicas=task.parallelism,
        limits=limits,
    )
    if not math.isfinite(model.a_ms):
        raise _UnknownError(f"{name}: a usable service or inter-arrival time")
    return model


def _needed(value: float | None, task: str, field_name: str) -> float:
    known = finite(value)
    if known is None:
        raise _UnknownError(f"{task}.{field_name}")
    return known


def _inputs(snapshot: Snapshot, name: str, model: QueueWait) -> Evidence:
    task = snapshot.tasks[name]
    return {
        "service_ms": task.service_ms,
        "service_cv": task.service_cv,
        "interarrival_ms": task.interarrival_ms,
        "interarrival_cv": task.interarrival_cv,
        "queue_wait_ms": queue_wait_ms(snapshot, name),
        "fit": model.fit,
    }


def forward_groups(snapshot: Snapshot) -> list[set[str]]:
    """Tasks that forward streams join one to one; they always have the same number of replicas."""
    groups: list[set[str]] = [{name} for name in snapshot.tasks]
    for stream in snapshot.streams:
        if stream.wiring == "forward":
            joined = [group for group in groups if group & {stream.sender, stream.receiver}]
            groups = [group for group in groups if group not in joined] + [set().union(*joined)]
    return [group for group in groups if len(group) > 1]


def keep_forward_equal(snapshot: Snapshot, replicas: Mapping[str, int]) -> dict[str, int]:
    """The same replicas for all tasks of a forward pipeline: as many as its most demanding task needs."""
    equal = dict(replicas)
    for group in forward_groups(snapshot):
        elastic = [name for name in snapshot.tasks if name in group and snapshot.tasks[name].elastic]
        if len(elastic) < len(group) or not any(name in replicas for name in elastic):
            continue
        wanted = max(replicas.get(name, 1) for name in elastic)
        for name in elastic:
            equal[name] = snapshot.tasks[name].within_limits(wanted)
    return equal
