"""Missing, partial or impossible data is never acted on.

A snapshot is refused if a number in it is not finite or negative, if an elastic task has no measurement
of its load at all, or if fewer replicas of a task reported than it has. A task that was measured and did
nothing is fine.
"""

import math

import msgspec

from penstock.policy.decision import Decision, Refusal
from penstock.policy.guards.port import Seen
from penstock.stats.snapshot import Snapshot, TaskStats

_LOAD = (
    "processed_total",
    "service_ms",
    "interarrival_ms",
    "utilization",
    "cpu",
    "useful_s",
    "backlog_total",
)


class MissingData:
    """The inspector `missing_data`."""

    name = "missing_data"

    def initial_memory(self) -> None:
        """Each snapshot is looked at by itself."""
        return

    def inspect(self, seen: Seen, memory: None) -> list[Refusal]:  # noqa: ARG002
        """What is wrong with the snapshot."""
        return [*self._impossible(seen.snapshot), *self._missing(seen.snapshot)]

    def settle(self, seen: Seen, issued: Decision, memory: None) -> None:  # noqa: ARG002
        """Nothing to remember."""
        return

    def _impossible(self, snapshot: Snapshot) -> list[Refusal]:
        refused = []
        if not _possible(snapshot.interval_s):
            refused.append(Refusal(guard=self.name, why=f"interval_s is {snapshot.interval_s}"))
        for name, task in snapshot.tasks.items():
            for field in _impossible_fields(task):
                why = f"tasks.{name}.{field} is not a finite number of 0 or more"
                refused.append(Refusal(guard=self.name, task=name, why=why))
        for stream in snapshot.streams:
            for field in _impossible_fields(stream):
                why = f"{field} of stream {stream.name!r} is not a finite number of 0 or more"
                refused.append(Refusal(guard=self.name, stream=stream.name, why=why))
        return refused

    def _missing(self, snapshot: Snapshot) -> list[Refusal]:
        refused = []
        for name, task in snapshot.elastic_tasks().items():
            if not task.instances and all(getattr(task, field) is None for field in _LOAD):
                why = f"{name!r} was not measured in this interval"
                refused.append(Refusal(guard=self.name, task=name, why=why))
        for name, task in snapshot.tasks.items():
            reported = task.parallelism if task.instances is None else _reported(task)
            if reported < task.parallelism:
                why = f"only {reported} of {task.parallelism} replicas of {name!r} reported"
                refused.append(Refusal(guard=self.name, task=name, why=why))
        return refused


def _reported(task: TaskStats) -> int:
    return sum(
        1
        for instance in task.instances or []
        if (instance.useful_s, instance.processed, instance.emitted) != (None, None, None)
    )


def _impossible_fields(stats: msgspec.Struct) -> list[str]:
    found = []
    for field, value in msgspec.structs.asdict(stats).items():
        if isinstance(value, float) and not _possible(value):
            found.append(field)
        if field == "instances" and value is not None:
            found.extend(
                f"instances[{i}].{inner}" for i, one in enumerate(value) for inner in _impossible_fields(one)
            )
    return found


def _possible(value: float) -> bool:
    return math.isfinite(value) and value >= 0
