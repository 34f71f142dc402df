"""The figures by which the papers judge a run, from its recording. docs/report.md says where each is from."""

from dataclasses import dataclass
from math import ceil
from statistics import fmean, median

from penstock.policy.ds2_rates import observed_output_per_s
from penstock.policy.held import Judge
from penstock.policy.measured import utilization
from penstock.report.history import History
from penstock.stats.snapshot import ConstraintSpec, Snapshot, StreamStats, TaskStats
from penstock.stats.throughput import processed_share, throughput_degradation

# Replicas are needed for the load at which each is this busy; `penstock bench policies` leaves the same room.
NEEDED_UTILIZATION = 0.75


@dataclass(frozen=True, slots=True)
class Kept:
    """How a constraint was kept; None where nothing was measured."""

    bound_ms: float
    statistic: str
    share_held: float | None
    mean_ms: float | None
    p95_ms: float | None
    violated_s: float


@dataclass(frozen=True, slots=True)
class Figures:
    """A run in figures; None where the recording cannot tell."""

    seconds: float
    kept: dict[str, Kept]
    task_hours: dict[str, float]
    worker_cpu: float | None
    cores_used: float | None
    saved_nodes: float | None
    throughput_degradation: float | None
    processed_share: float | None
    changes: int


def figures_of(history: History) -> Figures:
    """All figures of a run."""
    rates = throughput(history)
    items = [
        (due * snapshot.interval_s, arrived * snapshot.interval_s)
        for (due, arrived), snapshot in zip(rates or (), history.snapshots, strict=False)
    ]
    used, leased = _core_seconds(history)
    return Figures(
        seconds=history.ends_s[-1],
        kept={spec.name: _kept(history, spec) for spec in history.constraints},
        task_hours={
            name: sum(s.tasks[name].parallelism * s.interval_s for s in history.snapshots) / 3600
            for name in history.scaled_tasks()
        },
        worker_cpu=used / leased if used is not None and leased else None,
        cores_used=None if used is None else used / history.ends_s[-1],
        saved_nodes=_saved_nodes(history),
        throughput_degradation=throughput_degradation(items),
        processed_share=processed_share(items),
        changes=sum(
            history.decided[number].decision.parallelism.get(name, count) != count
            for number, snapshot in enumerate(history.snapshots)
            if number in history.decided
            for name, count in _replicas(snapshot).items()
        ),
    )


def held(history: History, constraint: str) -> list[bool | None]:
    """Whether each interval kept the bound it had, judged over the constraint's window that ends with it.

    None for one in which no source sent anything. A bound of p95 or p99 is held against the percentile; of
    others nothing is known. Where items were sent and the sequence could not be measured it counts as broken.
    """
    judge = Judge()
    return [
        found.held if (found := judge.verdicts(snapshot).get(constraint)) is not None else None
        for snapshot in history.snapshots
    ]


def needed(task: TaskStats) -> int | None:
    """Replicas that the load of the interval asks for, None if the load was not measured."""
    load = utilization(task)
    return None if load is None else max(1, ceil(load * task.parallelism / NEEDED_UTILIZATION - 1e-9))


def throughput(history: History) -> list[tuple[float, float]] | None:
    """What was due to arrive and what arrived at the sinks in every interval, per second.

    None for flows in which an item takes several ways and the recording does not tell which took how many:
    then what is due at their sinks cannot be told.
    """
    due = _due_per_s(history)
    if due is None:
        return None
    rates = []
    for snapshot, at in zip(history.snapshots, due, strict=True):
        sinks = [name for name, task in snapshot.tasks.items() if task.kind == "sink"]
        arrived = sum(snapshot.tasks[name].processed_total or 0.0 for name in sinks) / snapshot.interval_s
        rates.append((sum(at[name] for name in sinks), arrived))
    return rates


def _due_per_s(history: History) -> list[dict[str, float]] | None:
    """Items per second that would come to every task if nothing held them back, in every interval.

    That is what is due from the sources times what the tasks on the way make of one item over the whole run.
    """
    ratio = {stream.name: _items_out_per_item_in(history, stream) for stream in history.snapshots[0].streams}
    if None in ratio.values():
        return None
    intervals = []
    for snapshot in history.snapshots:
        due: dict[str, float] = {}
        for name in snapshot.topological_order():
            task = snapshot.tasks[name]
            inputs = snapshot.streams_into(name)
            due[name] = (
                _rate(task, snapshot) or 0.0
                if task.kind == "source"
                else sum(due[stream.sender] * (ratio[stream.name] or 0.0) for stream in inputs)
            )
        intervals.append(due)
    return intervals


def _kept(history: History, constraint: ConstraintSpec) -> Kept:
    verdicts = held(history, constraint.name)
    known = [verdict for verdict in verdicts if verdict is not None]
    means = [value for value in history.latencies_ms(constraint.name) if value is not None]
    p95s = [value for value in history.p95s_ms(constraint.name) if value is not None]
    return Kept(
        bound_ms=constraint.latency_ms,
        statistic=constraint.statistic,
        share_held=sum(known) / len(known) if known else None,
        mean_ms=fmean(means) if means else None,
        p95_ms=median(p95s) if p95s else None,
        violated_s=sum(
            snapshot.interval_s
            for snapshot, verdict in zip(history.snapshots, verdicts, strict=True)
            if verdict is False
        ),
    )


def _core_seconds(history: History) -> tuple[float | None, float | None]:
    known = [s for s in history.snapshots if s.cores_used is not None and s.cores_leased is not None]
    if not known:
        return None, None
    used = sum((s.cores_used or 0.0) * s.interval_s for s in known)
    return used, sum((s.cores_leased or 0.0) * s.interval_s for s in known)


def _saved_nodes(history: History) -> float | None:
    """1 - r / r_over: active replicas on average, against a fixed number that is enough for the peak."""
    names = [name for name in history.scaled_tasks() if history.snapshots[-1].tasks[name].elastic]
    if not names:
        return None
    due = _due_per_s(history)
    active = sum(s.tasks[name].parallelism * s.interval_s for s in history.snapshots for name in names)
    enough = sum(_enough(history, name, due) for name in names)
    return 1.0 - active / history.ends_s[-1] / enough if enough else None


def _enough(history: History, name: str, due: list[dict[str, float]] | None) -> int:
    """Replicas for the most that was due at a task; by its own measurements where that cannot be told."""
    seen = [snapshot.tasks[name] for snapshot in history.snapshots]
    service_ms = [task.service_ms for task in seen if task.service_ms is not None]
    if due is None or not service_ms:
        return max(needed(task) or 0 for task in seen)
    load = max(at[name] for at in due) * fmean(service_ms) / 1000.0
    return max(1, ceil(load / NEEDED_UTILIZATION - 1e-9))


def _items_out_per_item_in(history: History, stream: StreamStats) -> float | None:
    """Items on a stream for each that its sender took, over the run; None if that cannot be told."""
    first = history.snapshots[0]
    alone = len(first.streams_out_of(stream.sender)) == 1
    if alone and first.tasks[stream.sender].kind == "source":
        return 1.0
    both = [
        (taken, sent)
        for snapshot in history.snapshots
        if (taken := snapshot.tasks[stream.sender].processed_total)
        and (sent := _sent(snapshot, stream, alone=alone)) is not None
    ]
    if not both:
        return 1.0 if alone else None
    return sum(sent for _, sent in both) / sum(taken for taken, _ in both)


def _sent(snapshot: Snapshot, stream: StreamStats, *, alone: bool) -> float | None:
    sent = snapshot.stream(stream.name).emitted_total
    return snapshot.tasks[stream.sender].emitted_total if sent is None and alone else sent


def _replicas(snapshot: Snapshot) -> dict[str, int]:
    return {name: task.parallelism for name, task in snapshot.tasks.items()}


def _rate(task: TaskStats, snapshot: Snapshot) -> float | None:
    if task.rate_total is not None:
        return task.rate_total
    return observed_output_per_s(task, snapshot.interval_s)
