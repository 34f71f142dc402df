"""The queues of a flow: which tasks have one, what an item costs them, and what waits before them."""

import math
from collections.abc import Mapping
from dataclasses import dataclass

from penstock.policy.measured import finite
from penstock.policy.penstock.counted import Counted, Ratio
from penstock.policy.scaling_chains import heads
from penstock.stats.snapshot import ConstraintSpec, Snapshot, TaskStats

_WITHOUT_A_BOUND_MS = 1000.0


class UnknownError(Exception):
    """What the model needs and was not measured."""


@dataclass(frozen=True, slots=True)
class Server:
    """A task with a queue before it, alone or with the tasks that share its process."""

    name: str
    members: tuple[str, ...]


def servers(snapshot: Snapshot) -> dict[str, Server]:
    """The elastic tasks that have a queue of their own."""
    followers = heads(snapshot)
    chains = {chain[0]: tuple(chain) for chain in snapshot.chains if chain}
    return {
        name: Server(name, tuple(one for one in chains.get(name, (name,)) if one in snapshot.tasks))
        for name in snapshot.elastic_tasks()
        if name not in followers
    }


def service_s(server: Server, counts: Counted) -> float:
    """Of an item of the first task, with all that the others make of it."""
    first = counts.costs.get(server.name, Ratio()).below_each
    whole = 0.0
    for name in server.members:
        each = counts.service_s(name)
        if each is None or first <= 0.0:
            raise UnknownError(f"what an item costs {name!r} is not known yet")
        whole += each if name == server.name else each * counts.costs[name].below_each / first
    return whole


def queues_of(snapshot: Snapshot, constraint: ConstraintSpec, queued: Mapping[str, Server]) -> list[str]:
    """The tasks whose queues the items of a constraint wait in."""
    receivers = {one.name: one.receiver for one in snapshot.streams}
    return [receivers[name] for name in constraint.streams() if receivers[name] in queued]


def slacks_ms(
    snapshot: Snapshot, queued: Mapping[str, Server], fixed_ms: Mapping[str, float]
) -> dict[str, float]:
    """What the tightest constraint through each queue leaves to queues; without one, a second."""
    through: dict[str, float] = {}
    for one in snapshot.constraints:
        left_ms = max(0.0, one.latency_ms - fixed_ms.get(one.name, 0.0))
        for name in queues_of(snapshot, one, queued):
            through[name] = min(left_ms, through.get(name, math.inf))
    return {**dict.fromkeys(queued, _WITHOUT_A_BOUND_MS), **through}


def is_left_over(task: TaskStats, service_ms: float, slack_ms: float) -> bool:
    """Whether more waits than a queue that the bound allows for."""
    backlog = finite(task.backlog_total)
    return backlog is not None and backlog * service_ms / task.parallelism > 0.5 * slack_ms + 2.0 * service_ms


def service_cv2(server: Server, counts: Counted) -> float:
    """The squared coefficient of variation of that: sum of r (c S)^2 over the square of the sum of r S."""
    if len(server.members) == 1:
        return counts.service_cv2(server.name)
    first = counts.costs.get(server.name, Ratio()).below_each
    mean = square = 0.0
    for name in server.members:
        each, ratio = counts.service_s(name) or 0.0, counts.costs.get(name, Ratio()).below_each
        share = ratio / first if first > 0.0 else 1.0
        mean += share * each
        square += share * counts.service_cv2(name) * each * each
    return square / (mean * mean) if mean > 0.0 else counts.service_cv2(server.name)
