"""Changes too small to be worth their cost are dropped.

|to - from| / from < dead_band  ->  no change of this task            (Nephele's public code: 0.04)
"""

from dataclasses import dataclass
from typing import ClassVar

from penstock.policy.decision import Decision
from penstock.policy.guards.port import Seen, StatelessGuard
from penstock.policy.guards.revise import allow, changes


@dataclass(frozen=True, slots=True)
class DeadBand(StatelessGuard):
    """The guard `dead_band`."""

    share: float
    name: ClassVar[str] = "dead_band"

    def review(self, seen: Seen, proposed: Decision, memory: None) -> tuple[Decision, None]:
        """Drop small changes."""
        for task, (before, after) in changes(seen.snapshot, proposed).items():
            change = abs(after - before) / before
            if change < self.share:
                why = f"a change by {change:.1%} is less than {self.share:.1%}"
                proposed = allow(proposed, self.name, task, before=before, allowed=before, why=why)
        return proposed, memory
