"""Tasks that forward streams join one to one keep equal replicas, whatever was held back for one of them."""

from dataclasses import dataclass
from typing import ClassVar

from penstock.policy.decision import Decision
from penstock.policy.guards.port import Seen, StatelessGuard
from penstock.policy.guards.revise import allow, changes
from penstock.policy.keep import current_parallelism
from penstock.policy.scaling import keep_forward_equal


@dataclass(frozen=True, slots=True)
class Forward(StatelessGuard):
    """The guard `forward`."""

    name: ClassVar[str] = "forward"

    def review(self, seen: Seen, proposed: Decision, memory: None) -> tuple[Decision, None]:
        """As many as the most demanding task of a pipeline still gets."""
        if not changes(seen.snapshot, proposed):
            return proposed, memory
        now = current_parallelism(seen.snapshot)
        for task, count in keep_forward_equal(seen.snapshot, proposed.parallelism).items():
            if count != proposed.parallelism[task]:
                why = f"{task!r} is joined one to one with a task of {count} replicas"
                proposed = allow(proposed, self.name, task, before=now[task], allowed=count, why=why)
        return proposed, memory
