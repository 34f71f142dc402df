"""What an interval says about queues: how far the formula is off, who has a backlog, what is no waiting."""

import math
from collections.abc import Mapping

from penstock.policy.measured import finite, output_batch_ms, queue_wait_ms, task_latency_ms
from penstock.policy.penstock.capacity import Scalability
from penstock.policy.penstock.counted import LUCK, Counted, Ratio
from penstock.policy.penstock.servers import (
    UnknownError,
    is_left_over,
    servers,
    service_cv2,
    service_s,
    slacks_ms,
)
from penstock.policy.penstock.waiting import Fit, Wait, learnt
from penstock.stats.snapshot import ConstraintSpec, Snapshot

_CALM = 0.92
MANY = 1_000_000


def fits_after(
    snapshot: Snapshot, counts: Counted, before: Mapping[str, Fit], last: Snapshot | None
) -> dict[str, Fit]:
    """What the waits of one more interval tell.

    Those of tasks that changed, were too busy, or had more than a queue before or after it, tell nothing.
    """
    found, queued = dict(before), servers(snapshot)
    slack_ms = slacks_ms(snapshot, queued, {})
    for name, server in queued.items():
        task, before_it = snapshot.tasks[name], None if last is None else last.tasks.get(name)
        wait_ms, done = queue_wait_ms(snapshot, name), finite(task.processed_total)
        if wait_ms is None or not done or before_it is None or before_it.parallelism != task.parallelism:
            continue
        try:
            each_ms = 1000.0 * service_s(server, counts)
        except UnknownError:
            continue
        rho = done * each_ms / 1000.0 / snapshot.interval_s / task.parallelism
        calm = not any(is_left_over(one, each_ms, slack_ms[name]) for one in (before_it, task))
        if rho < _CALM and calm:
            wait = Wait(
                service_ms=each_ms,
                service_cv2=service_cv2(server, counts),
                rate_per_s=done / snapshot.interval_s,
                arrivals=None,
                cv2=counts.arrival_cv2(name),
                now=task.parallelism,
                exponent=0.0,
                fit=Fit(),
                interval_s=snapshot.interval_s,
            )
            found[name] = learnt(found.get(name, Fit()), wait_ms, *wait.wait_ms(task.parallelism))
    return found


def scalability_after(
    snapshot: Snapshot, before: Mapping[str, Scalability], last: Snapshot | None
) -> dict[str, Scalability]:
    """With the service times of this interval."""
    found = dict(before)
    for name, task in snapshot.elastic_tasks().items():
        each_ms = finite(task.service_ms)
        same = last is not None and name in last.tasks and last.tasks[name].parallelism == task.parallelism
        if each_ms and same:
            found[name] = found.get(name, Scalability()).seen(
                task.parallelism, each_ms, finite(task.utilization)
            )
    return found


def fixed_after(snapshot: Snapshot, counts: Counted, before: Mapping[str, Ratio]) -> dict[str, Ratio]:
    """What each constraint takes without the queues of elastic tasks: services, batches, the way.

    Over some intervals (counted.py): one may have had long items only.
    """
    queued, found = servers(snapshot), dict(before)
    by_name = {one.name: one for one in snapshot.streams}
    for constraint in snapshot.constraints:
        parts = [task_latency_ms(snapshot.tasks[name]) for name in constraint.tasks()]
        for name in constraint.streams():
            stream = by_name[name]
            latency_ms, batch_ms = finite(stream.latency_ms), output_batch_ms(stream)
            if stream.receiver in queued:
                wait_ms = queue_wait_ms(snapshot, stream.receiver)
                if batch_ms is None and latency_ms is not None and wait_ms is not None:
                    batch_ms = max(0.0, latency_ms - wait_ms)
                parts.append(batch_ms)
            else:
                parts.append(latency_ms)
        known = [part for part in parts if part is not None]
        if len(known) == len(parts):
            luck_ms = LUCK * _luck_ms(snapshot, counts, constraint)
            found[constraint.name] = before.get(constraint.name, Ratio()).then(math.fsum(known), 1.0, luck_ms)
    return found


def _luck_ms(snapshot: Snapshot, counts: Counted, constraint: ConstraintSpec) -> float:
    """Of the mean service times of an interval, together."""
    square = 0.0
    for name in constraint.tasks():
        each_s, done = counts.service_s(name), finite(snapshot.tasks[name].processed_total)
        if each_s and done:
            square += 1e6 * each_s * each_s * counts.service_cv2(name) / done
    return math.sqrt(square)


def holders_after(snapshot: Snapshot, counts: Counted, before: Mapping[str, int]) -> dict[str, int]:
    """By task with more than a queue: the fewest replicas since that began. They are those that have it."""
    found, queued = {}, servers(snapshot)
    slack_ms = slacks_ms(snapshot, queued, {})
    for name, server in queued.items():
        task = snapshot.tasks[name]
        try:
            each_ms = 1000.0 * service_s(server, counts)
        except UnknownError:
            continue
        if is_left_over(task, each_ms, slack_ms[name]):
            found[name] = min(task.parallelism, before.get(name, MANY))
    return found
