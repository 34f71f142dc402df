"""After a change the flow is left alone until the change has shown its effect.

After a scale-up nothing is scaled for `cool_down_intervals`; after a scale-down only further scale-downs
wait, so that a rising load is answered at once (Nephele's public code: two rounds after a scale-up, none
after a scale-down). Rounds and not seconds, since what a change brought shows in the intervals after it,
however long they are.
"""

from dataclasses import dataclass, replace
from typing import ClassVar

from penstock.policy.decision import Decision
from penstock.policy.guards.port import Seen
from penstock.policy.guards.revise import allow, changes


@dataclass(frozen=True, slots=True)
class CoolDownMemory:
    """When replicas were last added and last taken away."""

    up_s: float | None = None
    down_s: float | None = None


@dataclass(frozen=True, slots=True)
class CoolDown:
    """The guard `cool_down`."""

    cool_down_intervals: int
    name: ClassVar[str] = "cool_down"

    def initial_memory(self) -> CoolDownMemory:
        """No change yet."""
        return CoolDownMemory()

    def review(
        self, seen: Seen, proposed: Decision, memory: CoolDownMemory
    ) -> tuple[Decision, CoolDownMemory]:
        """Refuse what comes too early."""
        for task, (before, after) in changes(seen.snapshot, proposed).items():
            passed, what = seen.intervals_since(memory.up_s), "scale-up"
            if passed >= self.cool_down_intervals and after < before:
                passed, what = seen.intervals_since(memory.down_s), "scale-down"
            if passed < self.cool_down_intervals:
                why = f"{passed:g} of {self.cool_down_intervals} intervals since the last {what}"
                proposed = allow(proposed, self.name, task, before=before, allowed=before, why=why)
        return proposed, memory

    def settle(self, seen: Seen, issued: Decision, memory: CoolDownMemory) -> CoolDownMemory:
        """Remember the time of a change."""
        steps = [after - before for before, after in changes(seen.snapshot, issued).values()]
        if any(step > 0 for step in steps):
            memory = replace(memory, up_s=seen.now_s)
        if any(step < 0 for step in steps):
            memory = replace(memory, down_s=seen.now_s)
        return memory
