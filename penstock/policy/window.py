"""Several snapshots as one: what a policy needs whose interval is longer than that of the snapshots.

Counts and useful times are summed, rates and utilisations are averaged over time, service times over
items; a backlog is that of the end. A change of parallelism begins a new window, because work done by
different numbers of replicas must not be mixed.
"""

from dataclasses import dataclass

import msgspec

from penstock.stats.snapshot import InstanceStats, Snapshot, TaskStats


@dataclass(frozen=True, slots=True)
class Window:
    """What has been gathered so far; empty at the beginning and after each full window."""

    gathered: Snapshot | None = None


def gather(window: Window, snapshot: Snapshot, length_s: float) -> tuple[Window, Snapshot | None]:
    """The window with `snapshot` in it, and the merged snapshot once at least `length_s` is covered."""
    before = window.gathered
    merged = snapshot if before is None or not _comparable(before, snapshot) else merge(before, snapshot)
    if merged.interval_s >= length_s:
        return Window(), merged
    return Window(merged), None


def merge(first: Snapshot, then: Snapshot) -> Snapshot:
    """One snapshot over both intervals; constraints, chains and what streams did are those of `then`."""
    tasks = {
        name: _merge_task(first.tasks[name], task, first.interval_s, then.interval_s)
        for name, task in then.tasks.items()
    }
    sent = {stream.name: stream.emitted_total for stream in first.streams}
    streams = [
        msgspec.structs.replace(stream, emitted_total=_sum(sent.get(stream.name), stream.emitted_total))
        for stream in then.streams
    ]
    return msgspec.structs.replace(
        then, interval_s=first.interval_s + then.interval_s, tasks=tasks, streams=streams
    )


def _comparable(first: Snapshot, then: Snapshot) -> bool:
    return first.tasks.keys() == then.tasks.keys() and all(
        first.tasks[name].parallelism == task.parallelism for name, task in then.tasks.items()
    )


def _merge_task(first: TaskStats, then: TaskStats, first_s: float, then_s: float) -> TaskStats:
    by_time = (first_s, then_s)
    by_items = (first.processed_total or 0.0, then.processed_total or 0.0)
    if sum(by_items) == 0:
        by_items = by_time
    return msgspec.structs.replace(
        then,
        processed_total=_sum(first.processed_total, then.processed_total),
        emitted_total=_sum(first.emitted_total, then.emitted_total),
        useful_s=_sum(first.useful_s, then.useful_s),
        instances=_merge_instances(first.instances, then.instances),
        rate_total=_mean(first.rate_total, then.rate_total, by_time),
        utilization=_mean(first.utilization, then.utilization, by_time),
        utilization_max=_largest(first.utilization_max, then.utilization_max),
        cpu=_mean(first.cpu, then.cpu, by_time),
        service_ms=_mean_of_known(first.service_ms, then.service_ms, by_items),
        queue_wait_ms=_mean_of_known(first.queue_wait_ms, then.queue_wait_ms, by_items),
        latency_ms=_mean_of_known(first.latency_ms, then.latency_ms, by_items),
    )


def _merge_instances(
    first: list[InstanceStats] | None, then: list[InstanceStats] | None
) -> list[InstanceStats] | None:
    if first is None or then is None or len(first) != len(then):
        return None
    return [
        InstanceStats(
            useful_s=_sum(a.useful_s, b.useful_s),
            processed=_sum(a.processed, b.processed),
            emitted=_sum(a.emitted, b.emitted),
        )
        for a, b in zip(first, then, strict=True)
    ]


def _sum(a: float | None, b: float | None) -> float | None:
    return None if a is None or b is None else a + b


def _largest(a: float | None, b: float | None) -> float | None:
    return None if a is None or b is None else max(a, b)


def _mean(a: float | None, b: float | None, weights: tuple[float, float]) -> float | None:
    return None if a is None or b is None else (a * weights[0] + b * weights[1]) / sum(weights)


def _mean_of_known(a: float | None, b: float | None, weights: tuple[float, float]) -> float | None:
    """The mean of what was sampled: an interval in which no item was seen has no part in it."""
    if a is None or b is None:
        return b if a is None else a
    return _mean(a, b, weights)
