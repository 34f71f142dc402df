"""Changes too small to be worth their cost are dropped, unless they are wanted for long.

    |to - from| / from < share  ->  no change of this task            (Nephele's public code: 0.04)

A small change that noise suggests is soon taken back. One that is still wanted, in the same direction,
after `patience_s` is a need: policies that move by single replicas could otherwise never move a large
task.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import ClassVar

from penstock.policy.decision import Decision
from penstock.policy.guards.port import Seen
from penstock.policy.guards.revise import allow, changes


@dataclass(frozen=True, slots=True)
class SmallChange:
    """A small change that is wanted: more replicas or fewer, and since when."""

    grows: bool
    since_s: float


@dataclass(frozen=True, slots=True)
class DeadBandMemory:
    """The small changes that are wanted and not made, by task."""

    small: Mapping[str, SmallChange] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class DeadBand:
    """The guard `dead_band`."""

    share: float
    patience_s: float
    name: ClassVar[str] = "dead_band"

    def initial_memory(self) -> DeadBandMemory:
        """No small change is wanted."""
        return DeadBandMemory()

    def review(
        self, seen: Seen, proposed: Decision, memory: DeadBandMemory
    ) -> tuple[Decision, DeadBandMemory]:
        """Drop small changes that are new."""
        small: dict[str, SmallChange] = {}
        for task, (before, after) in changes(seen.snapshot, proposed).items():
            change = abs(after - before) / before
            if change >= self.share:
                continue
            known = memory.small.get(task)
            grows = after > before
            small[task] = (
                known if known is not None and known.grows == grows else SmallChange(grows, seen.now_s)
            )
            waited_s = seen.now_s - small[task].since_s
            if waited_s < self.patience_s:
                why = f"a change by {change:.1%}, less than {self.share:.1%}, wanted for {waited_s:g} s"
                proposed = allow(proposed, self.name, task, before=before, allowed=before, why=why)
        return proposed, DeadBandMemory(small)

    def settle(self, seen: Seen, issued: Decision, memory: DeadBandMemory) -> DeadBandMemory:
        """After a change of a task its waiting begins anew."""
        changed = changes(seen.snapshot, issued)
        return DeadBandMemory({task: one for task, one in memory.small.items() if task not in changed})
