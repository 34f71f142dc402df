"""Old data is not acted on: neither a repeated snapshot nor one from before the last change.

A flow that processes anything never measures exactly the same twice: an equal snapshot was not refreshed.
And after a change has been issued, what is measured with other replicas than the issued ones says nothing
about it (Nephele's rule that data must be newer than the last change); if the engine has not obeyed after
`apply_timeout_s`, its state is taken as it is.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import ClassVar

from penstock.policy.decision import Decision, Refusal
from penstock.policy.guards.port import Seen
from penstock.policy.keep import current_parallelism
from penstock.stats.snapshot import Snapshot


@dataclass(frozen=True, slots=True)
class StaleMemory:
    """The last snapshot, and a change that has been issued and not been seen yet."""

    last: Snapshot | None = None
    pending: Mapping[str, int] = field(default_factory=dict)
    issued_s: float = 0.0


@dataclass(frozen=True, slots=True)
class StaleData:
    """The inspector `stale_data`."""

    apply_timeout_s: float
    name: ClassVar[str] = "stale_data"

    def initial_memory(self) -> StaleMemory:
        """Nothing seen, nothing issued."""
        return StaleMemory()

    def inspect(self, seen: Seen, memory: StaleMemory) -> list[Refusal]:
        """A refusal if this snapshot brings nothing new."""
        if memory.last is not None and _repeats(seen.snapshot, memory.last):
            why = "every measurement equals the last snapshot's: they were not refreshed"
            return [Refusal(guard=self.name, why=why)]
        waited_s = seen.now_s - memory.issued_s
        if waited_s >= self.apply_timeout_s:
            return []
        now = current_parallelism(seen.snapshot)
        return [
            Refusal(
                guard=self.name,
                task=task,
                before=now[task],
                after=count,
                why=f"measured with {now[task]} replicas, but {count} were asked for {waited_s:g} s ago",
            )
            for task, count in memory.pending.items()
            if now.get(task, count) != count
        ]

    def settle(self, seen: Seen, issued: Decision, memory: StaleMemory) -> StaleMemory:
        """Remember the snapshot and, if something was changed, what and when."""
        now = current_parallelism(seen.snapshot)
        memory = replace(memory, last=seen.snapshot)
        if issued.parallelism == now:
            waiting = any(now.get(task, count) != count for task, count in memory.pending.items())
            expired = seen.now_s - memory.issued_s >= self.apply_timeout_s
            return memory if waiting and not expired else replace(memory, pending={})
        return replace(memory, pending=dict(issued.parallelism), issued_s=seen.now_s)


def _repeats(snapshot: Snapshot, last: Snapshot) -> bool:
    working = any(task.processed_total or task.service_ms for task in snapshot.tasks.values())
    return working and snapshot.tasks == last.tasks and snapshot.streams == last.streams
