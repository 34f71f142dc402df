"""The figures of an interval that are drawn over time: one row for each interval, one column for each figure.

A key names a column: what it belongs to, whose it is, and which figure. Times are in ms, rates per second.
"""

from collections.abc import Mapping, Sequence
from math import isfinite

from penstock.policy.ds2_rates import observed_output_per_s
from penstock.policy.held import Verdict
from penstock.policy.measured import (
    finite,
    output_batch_ms,
    queue_wait_ms,
    sequence_latency_ms,
    task_latency_ms,
)
from penstock.report.latency_parts import KINDS, latency_parts, stream_parts
from penstock.report.metrics import needed
from penstock.stats.snapshot import CommitStats, ConstraintSpec, Snapshot, StreamStats, TaskStats

Key = tuple[str, ...]
Value = float | None
CONSTRAINT = ("bound", "mean", "p95", "p99", "held")
TASK = (
    "rate",
    "utilization",
    "service",
    "queue",
    "replicas",
    "pool",
    "needed",
    "planned",
    "lag_ms",
    "lag_items",
    "backlog",
    "state_bytes",
)
STREAM = ("latency", "batching", "transport", "queue", "lifetime")
FLOW = ("cores_used", "cores_leased", "stood_still")
COMMITS = ("epoch", "age", "took", "committed", "void", "rollbacks")
_DIGITS = 4


def shape_of(snapshot: Snapshot) -> tuple[object, ...]:
    """What the columns of a flow follow from; quick to make and to compare."""
    constraints = [(one.name, one.sequence) for one in snapshot.constraints]
    return constraints, [*snapshot.tasks], [stream.name for stream in snapshot.streams]


def keys_of(snapshot: Snapshot) -> list[Key]:
    """The columns of a flow; they stay while it runs."""
    return [
        *(("constraint", one.name, figure) for one in snapshot.constraints for figure in CONSTRAINT),
        *(
            ("part", one.name, task, kind)
            for one in snapshot.constraints
            for task in _touched(one)
            for kind in KINDS
        ),
        *(("task", name, figure) for name in snapshot.tasks for figure in TASK),
        *(("stream", one.name, figure) for one in snapshot.streams for figure in STREAM),
        *(("flow", "", figure) for figure in FLOW),
        *(("commits", "", figure) for figure in COMMITS),
    ]


def row_of(
    snapshot: Snapshot,
    verdicts: Mapping[str, Verdict],
    planned: Mapping[str, int],
    stood_still_ms: float | None,
) -> list[Value]:
    """The figures of one interval, in the order of `keys_of`; `planned` is what was decided before it."""
    row: list[Value] = []
    for constraint in snapshot.constraints:
        row += _constraint(snapshot, constraint, verdicts.get(constraint.name))
    for constraint in snapshot.constraints:
        row += _parts(snapshot, constraint)
    for name, task in snapshot.tasks.items():
        row += _task(snapshot, task, queue_wait_ms(snapshot, name), planned.get(name))
    for stream in snapshot.streams:
        row += _stream(snapshot, stream)
    row += [snapshot.cores_used, snapshot.cores_leased, stood_still_ms]
    row += _commits(snapshot.commits)
    return [None if value is None or not isfinite(value) else round(value, _DIGITS) for value in row]


def task_rate_per_s(task: TaskStats, interval_s: float) -> float | None:
    """What a source sends, or was due to send; what any other task processes."""
    if task.kind == "source":
        return task.rate_total if task.rate_total is not None else observed_output_per_s(task, interval_s)
    return None if task.processed_total is None else task.processed_total / interval_s


def _constraint(snapshot: Snapshot, constraint: ConstraintSpec, verdict: Verdict | None) -> list[Value]:
    held = None if verdict is None or verdict.held is None else float(verdict.held)
    mean_ms = sequence_latency_ms(snapshot, constraint)
    return [constraint.latency_ms, mean_ms, constraint.p95_ms, constraint.p99_ms, held]


def _touched(constraint: ConstraintSpec) -> list[str]:
    """The tasks that a sequence enters or leads to, in its order."""
    return list(dict.fromkeys(element.rpartition("->")[2] for element in constraint.sequence))


def _parts(snapshot: Snapshot, constraint: ConstraintSpec) -> Sequence[Value]:
    tasks = _touched(constraint)
    found = latency_parts(snapshot, constraint)
    if found is None:
        return [None] * (len(tasks) * len(KINDS))
    sums = dict.fromkeys(((task, kind) for task in tasks for kind in KINDS), 0.0)
    for part in found:
        sums[part.task, part.kind] += part.ms
    return list(sums.values())


def _task(snapshot: Snapshot, task: TaskStats, wait_ms: Value, planned: int | None) -> list[Value]:
    return [
        task_rate_per_s(task, snapshot.interval_s),
        task.utilization,
        task_latency_ms(task) if task.kind != "source" else None,
        wait_ms if task.kind != "source" else None,
        task.parallelism,
        task.pool,
        needed(task),
        planned,
        task.lag_ms,
        task.lag_items,
        task.backlog_total,
        task.state_bytes,
    ]


def _commits(commits: CommitStats | None) -> list[Value]:
    """Nothing where they are boundaries."""
    if commits is None:
        return [None] * len(COMMITS)
    age_ms = None if commits.age_s is None else 1000 * commits.age_s
    return [commits.epoch, age_ms, commits.took_ms, commits.committed, commits.void, commits.rollbacks]


def _stream(snapshot: Snapshot, stream: StreamStats) -> list[Value]:
    parts = stream_parts(snapshot, stream.name)
    if parts is None:
        return [None, output_batch_ms(stream), None, None, stream.batch_lifetime_ms]
    return [finite(stream.latency_ms), *(part.ms for part in parts), stream.batch_lifetime_ms]
