"""What a policy may take from a snapshot: a measured number, or None where it was not measured.

A number that is not finite counts as not measured, whoever made the snapshot.
"""

import math

from penstock.stats.snapshot import ConstraintSpec, Snapshot, StreamStats, TaskStats


def finite(value: float | None) -> float | None:
    """`value` if it is a number one can calculate with."""
    return value if value is not None and math.isfinite(value) else None


def task_latency_ms(task: TaskStats) -> float | None:
    """How long an item stays in the task, l_v.

    A source has none (thesis, section 4.1). Without a measurement the service time stands in for a read-ready
    latency, which it equals for a task with one input stream (appendix A).
    """
    latency_ms = finite(task.latency_ms)
    if latency_ms is not None:
        return latency_ms
    if task.kind == "source":
        return 0.0
    return None if task.latency_kind == "read_write" else finite(task.service_ms)


def utilization(task: TaskStats) -> float | None:
    """The load of the average replica: the larger of S/A (appendix A) and of the measured busy share.

    Under back-pressure S/A stays near 1 or below while the process is busy all the time; while queues grow
    the busy share stays at 1 and S/A passes it. A bottleneck shows in either of them.
    """
    measured = finite(task.utilization)
    service_ms, interarrival_ms = finite(task.service_ms), finite(task.interarrival_ms)
    if service_ms is None or not interarrival_ms:
        return measured
    offered = service_ms / interarrival_ms
    return offered if measured is None else max(offered, measured)


def largest_utilization(task: TaskStats) -> float | None:
    """The load of the busiest replica; with one replica that is the average one."""
    largest = finite(task.utilization_max)
    if largest is None and task.parallelism == 1:
        return utilization(task)
    return largest


def queue_wait_ms(snapshot: Snapshot, name: str) -> float | None:
    """How long items wait before task `name`, w_v.

    Without a measurement of its own: channel latency less output batch latency, for a task with one input.
    """
    task = snapshot.tasks[name]
    wait_ms = finite(task.queue_wait_ms)
    if wait_ms is not None:
        return wait_ms
    if task.kind == "source":
        return 0.0
    inputs = snapshot.streams_into(name)
    if len(inputs) != 1:
        return None
    latency_ms, batch_ms = finite(inputs[0].latency_ms), output_batch_ms(inputs[0])
    if latency_ms is None or batch_ms is None:
        return None
    return max(0.0, latency_ms - batch_ms)


def output_batch_ms(stream: StreamStats) -> float | None:
    """How long items wait for their envelope to be shipped; nothing when each is shipped at once."""
    measured = finite(stream.output_batch_ms)
    if measured is None and stream.batch_lifetime_ms == 0:
        return 0.0
    return measured


def sequence_latency_ms(snapshot: Snapshot, constraint: ConstraintSpec) -> float | None:
    """The mean latency of a constrained sequence; None when one of its elements was not measured."""
    tasks = [task_latency_ms(snapshot.tasks[name]) for name in constraint.tasks()]
    streams = [finite(snapshot.stream(name).latency_ms) for name in constraint.streams()]
    known = [latency_ms for latency_ms in (*tasks, *streams) if latency_ms is not None]
    return sum(known) if len(known) == len(constraint.sequence) else None
