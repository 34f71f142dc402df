"""Snapshots of one elastic task between a source and a sink, as a given load would make them."""

from collections.abc import Callable, Mapping

import msgspec

from penstock.stats.snapshot import ConstraintSpec, InstanceStats, Snapshot, StreamStats, TaskStats

INTERVAL_S = 5.0
SERVICE_MS = 4.0
LONGEST_WAIT_MS = 2000.0


def loaded(
    rate: float, replicas: int, *, most: int = 16, bound_ms: float = 20.0, jitter: int = 0
) -> Snapshot:
    """`rate` items a second for a task of 4 ms; what exceeds its replicas waits.

    `jitter` tells snapshots apart, as noise does in a flow.
    """
    load = rate * SERVICE_MS / 1000 / replicas
    done = min(rate, replicas * 1000 / SERVICE_MS) * INTERVAL_S + jitter * 0.001
    wait_ms = LONGEST_WAIT_MS if load >= 1 else min(LONGEST_WAIT_MS, SERVICE_MS * load / (2 * (1 - load)))
    busy = min(1.0, load)
    instance = InstanceStats(useful_s=busy * INTERVAL_S, processed=done / replicas, emitted=done / replicas)
    work = TaskStats(
        kind="task",
        parallelism=replicas,
        min=1,
        max=most,
        elastic=True,
        service_ms=SERVICE_MS,
        service_cv=0.5,
        interarrival_ms=replicas / rate * 1000,
        interarrival_cv=1.0,
        queue_wait_ms=wait_ms,
        latency_ms=SERVICE_MS,
        latency_kind="read_ready",
        utilization=busy,
        utilization_max=busy,
        cpu=busy,
        processed_total=done,
        emitted_total=done,
        useful_s=busy * INTERVAL_S,
        instances=[instance] * replicas,
        backlog_total=max(0.0, rate * INTERVAL_S - done),
        baseline_service_ms=SERVICE_MS,
    )
    source = TaskStats(
        kind="source",
        parallelism=1,
        rate_total=rate,
        emitted_total=rate * INTERVAL_S,
        processed_total=rate * INTERVAL_S,
        useful_s=0.1,
        instances=[InstanceStats(useful_s=0.1, processed=rate * INTERVAL_S, emitted=rate * INTERVAL_S)],
    )
    sink = TaskStats(
        kind="sink",
        parallelism=1,
        service_ms=0.01,
        latency_ms=0.01,
        utilization=0.01,
        utilization_max=0.01,
        processed_total=done,
        useful_s=0.05,
        instances=[InstanceStats(useful_s=0.05, processed=done)],
    )
    return Snapshot(
        interval_s=INTERVAL_S,
        tasks={"source": source, "work": work, "sink": sink},
        streams=[
            StreamStats(
                origin="source",
                receiver="work",
                latency_ms=wait_ms + 1,
                output_batch_ms=0.0,
                batch_lifetime_ms=0.0,
            ),
            StreamStats(
                origin="work", receiver="sink", latency_ms=1.0, output_batch_ms=0.0, batch_lifetime_ms=0.0
            ),
        ],
        constraints=[
            ConstraintSpec(
                name="quick",
                sequence=["source->work", "work", "work->sink"],
                latency_ms=bound_ms,
                window_s=INTERVAL_S,
            )
        ],
        chains=[["work"], ["sink"]],
    )


def following(
    rates: list[float], *, most: int = 16, bound_ms: float = 20.0
) -> Callable[[int, Mapping[str, int]], Snapshot | None]:
    """For a FakeEngine: one interval for each rate."""

    def show(number: int, replicas: Mapping[str, int]) -> Snapshot | None:
        if number >= len(rates):
            return None
        return loaded(rates[number], replicas["work"], most=most, bound_ms=bound_ms, jitter=number)

    return show


def with_a_hole(snapshot: Snapshot) -> Snapshot:
    """One replica of the task did not report."""
    work = snapshot.tasks["work"]
    lacking = msgspec.structs.replace(work, instances=(work.instances or [])[:-1])
    return msgspec.structs.replace(snapshot, tasks={**snapshot.tasks, "work": lacking})
