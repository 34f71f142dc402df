"""Chains as elastic scaling sees them: one queue before one server, the process of the first task.

The later tasks of a chain take their items from the hands of the first: they have neither a queue nor
arrivals of their own, and always as many replicas as the first. For each of its items the first does the work
of all; task k takes r_k items for one of the first:

    S = sum of r_k S_k,    Var S = sum of r_k (c_k S_k)^2

So it is the first that is modelled, with the load of the whole chain. The thesis scales before it chains and
leaves this open.
"""

import math

import msgspec

from penstock.policy.measured import finite, largest_utilization, task_latency_ms, utilization
from penstock.stats.snapshot import Snapshot, TaskStats


def heads(snapshot: Snapshot) -> dict[str, str]:
    """The tasks that run in the process of another, and that one."""
    return {name: chain[0] for chain in snapshot.chains if chain[0] in snapshot.tasks for name in chain[1:]}


def as_served(snapshot: Snapshot) -> Snapshot:
    """The snapshot with the load of every chain at its first task."""
    joined = [chain for chain in snapshot.chains if len(chain) > 1 and chain[0] in snapshot.tasks]
    if not joined:
        return snapshot
    first = {chain[0]: _server([snapshot.tasks[name] for name in chain]) for chain in joined}
    return msgspec.structs.replace(snapshot, tasks={**snapshot.tasks, **first})


def _server(chain: list[TaskStats]) -> TaskStats:
    head = chain[0]
    shares = [_items_per_item(task, head) for task in chain]
    service_ms = _sum([_times(share, task.service_ms) for share, task in zip(shares, chain, strict=True)])
    variance = _sum([_variance(share, task) for share, task in zip(shares, chain, strict=True)])
    known = service_ms and variance is not None
    return msgspec.structs.replace(
        head,
        service_ms=service_ms,
        service_cv=math.sqrt(variance or 0.0) / service_ms if known and service_ms else None,
        latency_ms=task_latency_ms(head),
        utilization=_sum([utilization(task) for task in chain]),
        utilization_max=_sum([largest_utilization(task) for task in chain]),
    )


def _items_per_item(task: TaskStats, head: TaskStats) -> float:
    taken, given = finite(task.processed_total), finite(head.processed_total)
    return taken / given if taken is not None and given else 1.0


def _variance(share: float, task: TaskStats) -> float | None:
    service_ms, cv = finite(task.service_ms), finite(task.service_cv)
    return None if service_ms is None or cv is None else finite(share * (cv * service_ms) * (cv * service_ms))


def _times(share: float, value: float | None) -> float | None:
    known = finite(value)
    return None if known is None else finite(share * known)


def _sum(values: list[float | None]) -> float | None:
    """Unknown if one of them is."""
    known = [value for value in values if value is not None]
    return finite(math.fsum(known)) if len(known) == len(values) else None
