"""Snapshots of a row of tasks as they would be measured, for tests of the policy `penstock`."""

from collections.abc import Sequence
from itertools import pairwise
from typing import Any

from penstock.stats.snapshot import (
    ConstraintSpec,
    QueueStats,
    Snapshot,
    StreamStats,
    TaskStats,
    check_snapshot,
)

INTERVAL_S = 5.0


def row(
    rate_per_s: float,
    services_ms: Sequence[float] = (20.0, 5.0),
    replicas: Sequence[int] = (4, 2),
    *,
    bound_ms: float = 120.0,
    most: int | None = 40,
    wait_ms: float = 3.0,
    backlog: float = 0.0,
    luck: float = 0.0,
    constraint: dict[str, Any] | None = None,
    **changes: Any,
) -> Snapshot:
    """Source, t0, t1, ..., sink in a row, with all that is due done; `changes` are those of every task.

    `luck` makes two otherwise equal snapshots differ.
    """
    names = [f"t{number}" for number in range(len(services_ms))]
    items = rate_per_s * INTERVAL_S
    tasks = {
        "source": TaskStats(
            kind="source", parallelism=1, rate_total=rate_per_s, processed_total=items, emitted_total=items
        )
    }
    for name, each_ms, count in zip(names, services_ms, replicas, strict=True):
        busy_s = items * each_ms / 1000.0 / count
        measured: dict[str, Any] = {
            "service_ms": each_ms,
            "service_cv": 0.7,
            "interarrival_ms": 1000.0 * count / rate_per_s if rate_per_s else None,
            "interarrival_cv": 1.0,
            "queue_wait_ms": wait_ms + luck,
            "latency_ms": each_ms,
            "utilization": min(1.0, busy_s / INTERVAL_S),
            "processed_total": items,
            "emitted_total": items,
            "useful_s": busy_s,
            "backlog_total": backlog,
            **changes,
        }
        tasks[name] = TaskStats(kind="task", parallelism=count, max=most, elastic=True, **measured)
    tasks["sink"] = TaskStats(kind="sink", parallelism=1, processed_total=items, queue_wait_ms=0.5)
    streams = [
        StreamStats(
            origin=sender,
            receiver=receiver,
            latency_ms=wait_ms + 0.5,
            output_batch_ms=0.5,
            batch_lifetime_ms=0.0,
            emitted_total=items,
            queue=QueueStats(items=0.0),
        )
        for sender, receiver in pairwise(tasks)
    ]
    sequence = [part for one in streams for part in (one.name, one.receiver)][:-1]
    limits = [
        ConstraintSpec(
            name="c1", sequence=sequence, latency_ms=bound_ms, window_s=INTERVAL_S, **(constraint or {})
        )
    ]
    made = Snapshot(interval_s=INTERVAL_S, tasks=tasks, streams=streams, constraints=limits)
    check_snapshot(made)
    return made
