"""Nothing changes in the first seconds: what is measured while a flow starts is not its load."""

from dataclasses import dataclass
from typing import ClassVar

from penstock.policy.decision import Decision
from penstock.policy.guards.port import Seen, StatelessGuard
from penstock.policy.guards.revise import refuse_everything


@dataclass(frozen=True, slots=True)
class WarmUp(StatelessGuard):
    """The guard `warm_up`."""

    warm_up_s: float
    name: ClassVar[str] = "warm_up"

    def review(self, seen: Seen, proposed: Decision, memory: None) -> tuple[Decision, None]:
        """Refuse everything until `warm_up_s` lie behind."""
        if seen.now_s > self.warm_up_s:
            return proposed, memory
        why = f"{seen.now_s:g} of {self.warm_up_s:g} s since the start"
        return refuse_everything(seen.snapshot, proposed, self.name, why), memory
