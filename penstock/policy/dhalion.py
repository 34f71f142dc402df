"""Dhalion: grow the one task that holds the others up, by the share of time it does (Heron's public code).

    replicas = ceil( replicas now * (1 + min(4, b / (1 - b))) ),      b: share of time under back-pressure

Sensors, detector, diagnosis, resolver: b is the larger of what the sources could not emit (1 - observed /
target rate) and of what the task left in its queue (backlog / (backlog + processed)); below the noise
level nothing is wrong. The task with the largest queue share, or the busiest if no queue is known, is the
one to blame. If its replicas process very unequal amounts the diagnosis is skew, for which the public
code has no cure. It has none for too many replicas either: this policy never scales down.
"""

import math
from dataclasses import dataclass, field
from typing import Annotated

import msgspec
from msgspec import Meta

from penstock.policy.decision import Decision, Reason
from penstock.policy.keep import current_parallelism, keep, scale
from penstock.policy.load import source_shortfall
from penstock.policy.measured import finite
from penstock.policy.window import Window, gather
from penstock.stats.snapshot import Snapshot, TaskStats

_LARGEST_SHARE = 0.999
_LARGEST_GROWTH = 4.0


class DhalionParameters(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What Heron's code has as constants; there, policy_interval_s is 60 and settle_s 180."""

    policy_interval_s: Annotated[
        float,
        Meta(
            ge=0,
            description="Time between evaluations (60 in Heron); 0: every snapshot.",
            extra={"unit": "s"},
        ),
    ] = 0.0
    settle_s: Annotated[
        float,
        Meta(
            ge=0,
            description="Time without evaluations after the start and after a change (180 in Heron).",
            extra={"unit": "s"},
        ),
    ] = 0.0
    noise: Annotated[
        float,
        Meta(ge=0, lt=1, description="Back-pressure up to this share is ignored.", extra={"unit": "share"}),
    ] = 0.02
    skew_limit: Annotated[
        float,
        Meta(
            ge=1,
            description="Largest / mean amount processed by the replicas above which the load is skewed.",
            extra={"unit": "ratio"},
        ),
    ] = 1.5


@dataclass(frozen=True, slots=True)
class DhalionMemory:
    """The window being gathered, and the time since parallelism last changed."""

    window: Window = field(default_factory=Window)
    parallelism: tuple[tuple[str, int], ...] = ()
    settled_s: float = 0.0


class Dhalion:
    """The policy `dhalion`."""

    name = "dhalion"

    def __init__(self, parameters: DhalionParameters) -> None:
        self.parameters = parameters

    def initial_memory(self) -> DhalionMemory:
        """Nothing seen."""
        return DhalionMemory()

    def decide(self, snapshot: Snapshot, memory: DhalionMemory) -> tuple[Decision, DhalionMemory]:
        """One task grows, or nothing happens."""
        now = tuple(current_parallelism(snapshot).items())
        before_s = memory.settled_s if now == memory.parallelism else 0.0
        window, gathered = gather(memory.window, snapshot, self.parameters.policy_interval_s)
        memory = DhalionMemory(window, now, before_s + snapshot.interval_s)
        if before_s < self.parameters.settle_s:
            why = f"{before_s:g} of {self.parameters.settle_s:g} s since the start or the last change"
            return keep(snapshot, self.name, [Reason(rule="settle", why=why)]), memory
        if gathered is None:
            why = f"the policy interval of {self.parameters.policy_interval_s:g} s is not over"
            return keep(snapshot, self.name, [Reason(rule="policy_interval", why=why)]), memory
        return self._diagnose(gathered), memory

    def _diagnose(self, snapshot: Snapshot) -> Decision:
        shortfall = source_shortfall(snapshot)
        throttled = None if shortfall is None else 1 - 1 / shortfall
        blind = _blind(snapshot, throttled)
        if blind is not None:
            return keep(snapshot, self.name, [blind])
        name = _slowest(snapshot)
        task = snapshot.tasks[name]
        queued = _queue_share(task)
        share = min(_LARGEST_SHARE, max(throttled or 0.0, queued or 0.0))
        if share <= self.parameters.noise:
            why = f"no back-pressure: {share:.3f} is at most {self.parameters.noise:g}"
            return keep(snapshot, self.name, [Reason(rule="healthy", inputs={"share": share}, why=why)])
        skew = _skew(task)
        if skew is not None and skew > self.parameters.skew_limit:
            why = f"the busiest replica of {name!r} processes {skew:.2f} times the mean; more would not help"
            return keep(snapshot, self.name, [Reason(rule="skew", task=name, inputs={"skew": skew}, why=why)])
        return self._grow(snapshot, name, share)

    def _grow(self, snapshot: Snapshot, name: str, share: float) -> Decision:
        task = snapshot.tasks[name]
        wanted = math.ceil(task.parallelism * (1 + min(_LARGEST_GROWTH, share / (1 - share))))
        if not task.elastic:
            why = f"{name!r} holds the flow up and has a fixed parallelism of {task.parallelism}"
            reason = Reason(rule="dhalion_limit", task=name, inputs={"share": share}, why=why)
            return scale(snapshot, self.name, {}, [reason], feasible=False)
        after = max(task.parallelism, task.within_limits(wanted))
        reason = Reason(
            rule="dhalion",
            task=name,
            before=task.parallelism,
            after=after,
            inputs={"share": share, "wanted": wanted},
            why=f"{name!r} holds the flow up {share:.1%} of the time",
        )
        return scale(snapshot, self.name, {name: after}, [reason], feasible=after >= wanted)


def _queue_share(task: TaskStats) -> float | None:
    backlog, processed = finite(task.backlog_total), finite(task.processed_total)
    if backlog is None or processed is None:
        return None
    return backlog / (backlog + processed) if backlog > 0 else 0.0


def _slowest(snapshot: Snapshot) -> str:
    """The task with the largest share of its work in the queue; the busiest one if no queue was measured."""
    tasks = {name: task for name, task in snapshot.tasks.items() if task.kind != "source"}
    return max(
        tasks, key=lambda name: (_queue_share(tasks[name]) or 0.0, finite(tasks[name].utilization) or 0.0)
    )


def _skew(task: TaskStats) -> float | None:
    amounts = [finite(instance.processed) for instance in task.instances or []]
    known = [amount for amount in amounts if amount is not None]
    if len(known) < task.parallelism or sum(known) == 0:
        return None
    return max(known) * len(known) / sum(known)


def _blind(snapshot: Snapshot, throttled: float | None) -> Reason | None:
    """What is missing to say whether and where there is back-pressure."""
    tasks = snapshot.elastic_tasks(sources=False)
    if not tasks:
        return Reason(rule="no_task", why="no task of this flow is elastic")
    queues_known = any(_queue_share(task) is not None for task in tasks.values())
    for name, task in tasks.items():
        busyness = None if queues_known or throttled is None else finite(task.utilization)
        if _queue_share(task) is None and busyness is None:
            return Reason(
                rule="missing_data",
                task=name,
                why=f"{name!r} lacks backlog_total or processed_total; nothing changes until it is measured",
            )
    return None
