"""The simulator, given what a run on Spark measured: does it predict that run's latency and replicas?"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from penstock.bench.harness import Check, ratio
from penstock.control.control_plan import ControlPlan
from penstock.control.loop import Cycle
from penstock.policy.measured import sequence_latency_ms
from penstock.sim.recorded import recorded_model
from penstock.sim.run import Run, simulate
from penstock.stats.snapshot import Snapshot

REPLICA_START_S = 0.2
WARM_UP_S = 20.0
LATENCY_BAR, REPLICAS_BAR = 0.3, 1


@dataclass(frozen=True, slots=True)
class Recorded:
    """What the controller saw of a run. What Spark does while Java is compiling is nobody's model.

    So the comparison begins when that is over, unless the tasks are too slow to feel it (`begin_s=0`).
    """

    cycles: Sequence[Cycle]
    plan: ControlPlan
    begin_s: float = WARM_UP_S


def predict(recorded: Recorded) -> tuple[list[Snapshot], Run]:
    """The measured snapshots, and the simulated run of the same flow, load, service times and policy."""
    plan = recorded.plan
    begin = min(round(recorded.begin_s / plan.interval_s), len(recorded.cycles) - 1)
    snapshots = [cycle.snapshot for cycle in recorded.cycles[begin:]]
    model = recorded_model(snapshots, replica_start_s=REPLICA_START_S, from_start=begin == 0)
    return snapshots, simulate(model, plan.create_policy(), seed=1)


def compare(snapshots: Sequence[Snapshot], run: Run) -> dict[str, Any]:
    """Mean latency of the first constraint over the items, and the replicas of every elastic task."""
    constraint = snapshots[0].constraints[0]
    measured = [(sequence_latency_ms(s, constraint), _rate(s)) for s in snapshots]
    predicted = [(point.latency_ms[constraint.name], point.emitted_per_s) for point in run.points]
    tasks = list(snapshots[0].elastic_tasks())
    replicas = {
        name: {
            "measured": [snapshot.tasks[name].parallelism for snapshot in snapshots],
            "predicted": [point.replicas[name] for point in run.points],
        }
        for name in tasks
    }
    return {
        "measured_mean_ms": _mean(measured),
        "predicted_mean_ms": _mean(predicted),
        "replicas": replicas,
        "largest_difference": max(
            (difference(both["measured"], both["predicted"]) for both in replicas.values()), default=None
        ),
    }


def difference(measured: Sequence[int], predicted: Sequence[int]) -> int:
    """The largest difference of two sequences; a change may come one interval earlier or later."""
    worst = 0
    for place, count in enumerate(measured[: len(predicted)]):
        near = predicted[max(0, place - 1) : place + 2]
        worst = max(worst, min(abs(count - other) for other in near))
    return worst


def summarise(runs: Mapping[str, Recorded]) -> tuple[dict[str, Any], list[Check]]:
    """Every run beside its prediction."""
    figures, checks = {}, []
    for name, recorded in runs.items():
        figures[name] = compare(*predict(recorded))
        off = ratio(figures[name]["predicted_mean_ms"], figures[name]["measured_mean_ms"])
        error = None if off is None else abs(off - 1)
        checks.append(Check(f"simulator, {name}: error of the mean latency", error, "<=", LATENCY_BAR))
        if figures[name]["replicas"]:
            apart = figures[name]["largest_difference"]
            checks.append(
                Check(f"simulator, {name}: replicas beside the measured ones", apart, "<=", REPLICAS_BAR)
            )
    return figures, checks


def _rate(snapshot: Snapshot) -> float:
    return sum(task.rate_total or 0.0 for task in snapshot.tasks.values())


def _mean(weighted: Sequence[tuple[float | None, float]]) -> float | None:
    known = [(value, weight) for value, weight in weighted if value is not None]
    total = sum(weight for _, weight in known)
    return sum(value * weight for value, weight in known) / total if total else None
