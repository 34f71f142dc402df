"""No task ever gets fewer replicas than its minimum or more than its maximum, whatever a policy says."""

from dataclasses import dataclass
from typing import ClassVar

import msgspec

from penstock.policy.decision import Decision
from penstock.policy.guards.port import Seen, StatelessGuard
from penstock.policy.guards.revise import allow, changes


@dataclass(frozen=True, slots=True)
class Bounds(StatelessGuard):
    """The guard `bounds`; it also drops tasks that are not elastic or not there."""

    name: ClassVar[str] = "bounds"

    def review(self, seen: Seen, proposed: Decision, memory: None) -> tuple[Decision, None]:
        """Back into the limits; what does not change is left where it is."""
        elastic = seen.snapshot.elastic_tasks()
        for task, (before, after) in changes(seen.snapshot, proposed).items():
            allowed = elastic[task].within_limits(after)
            if allowed != after:
                most = "any" if elastic[task].max is None else elastic[task].max
                why = f"{task!r} may have {elastic[task].min} to {most} replicas"
                proposed = allow(proposed, self.name, task, before=before, allowed=allowed, why=why)
                proposed = msgspec.structs.replace(proposed, feasible=proposed.feasible and after < allowed)
        for task in [name for name in proposed.parallelism if name not in elastic]:
            now = seen.snapshot.tasks[task].parallelism if task in seen.snapshot.tasks else 0
            refused = allow(
                proposed, self.name, task, before=now, allowed=now, why=f"{task!r} is not an elastic task"
            )
            parallelism = {name: count for name, count in refused.parallelism.items() if name != task}
            proposed = msgspec.structs.replace(refused, parallelism=parallelism)
        return proposed, memory
