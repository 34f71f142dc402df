"""One decision changes a task by a limited factor, since every estimate is less sure the further it reaches.

from * (1 - down) <= to <= from * up,      but one replica more or less is always allowed
"""

import math
from dataclasses import dataclass
from typing import ClassVar

from penstock.policy.decision import Decision
from penstock.policy.guards.port import Seen, StatelessGuard
from penstock.policy.guards.revise import allow, changes


@dataclass(frozen=True, slots=True)
class MaximumStep(StatelessGuard):
    """The guard `maximum_step`; None means no limit in that direction."""

    up: float | None
    down: float | None
    name: ClassVar[str] = "maximum_step"

    def review(self, seen: Seen, proposed: Decision, memory: None) -> tuple[Decision, None]:
        """Shorten the steps that are too long."""
        for task, (before, after) in changes(seen.snapshot, proposed).items():
            allowed = self._reachable(before, after)
            if allowed != after:
                why = f"at most {allowed} in one step from {before}"
                proposed = allow(proposed, self.name, task, before=before, allowed=allowed, why=why)
        return proposed, memory

    def _reachable(self, before: int, after: int) -> int:
        if after > before and self.up is not None:
            return min(after, max(before + 1, math.floor(before * self.up)))
        if after < before and self.down is not None:
            return max(after, min(before - 1, math.ceil(before * (1 - self.down))))
        return after
