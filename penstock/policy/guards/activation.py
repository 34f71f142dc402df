"""A change is made when several proposals in a row want it (DS2's activation time, for any policy).

A task changes only after `intervals` consecutive proposals in the same direction, and then to the last, the
largest or the median of them.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import ClassVar

from penstock.policy.agreement import AgreementRule, agreed
from penstock.policy.decision import Decision
from penstock.policy.guards.port import Seen
from penstock.policy.guards.revise import allow, changes


@dataclass(frozen=True, slots=True)
class ActivationMemory:
    """For each task the proposals in a row that go in one direction, the newest last."""

    rows: Mapping[str, tuple[int, ...]] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Activation:
    """The guard `activation`."""

    intervals: int
    rule: AgreementRule
    name: ClassVar[str] = "activation"

    def initial_memory(self) -> ActivationMemory:
        """No proposals yet."""
        return ActivationMemory()

    def review(
        self, seen: Seen, proposed: Decision, memory: ActivationMemory
    ) -> tuple[Decision, ActivationMemory]:
        """Hold back what has not been proposed often enough."""
        rows = {}
        for task, (before, after) in changes(seen.snapshot, proposed).items():
            row = tuple(count for count in memory.rows.get(task, ()) if (count > before) == (after > before))
            rows[task] = (*row, after)[-self.intervals :]
            if len(rows[task]) < self.intervals:
                why = f"proposal {len(rows[task])} of {self.intervals} in a row"
                proposed = allow(proposed, self.name, task, before=before, allowed=before, why=why)
            else:
                allowed = agreed([{task: count} for count in rows[task]], self.rule)[task]
                if allowed != after:
                    why = f"the {self.rule} of {self.intervals} proposals is {allowed}"
                    proposed = allow(proposed, self.name, task, before=before, allowed=allowed, why=why)
        return proposed, ActivationMemory(rows)

    def settle(self, seen: Seen, issued: Decision, memory: ActivationMemory) -> ActivationMemory:
        """After a change the row of that task begins anew."""
        changed = changes(seen.snapshot, issued)
        return ActivationMemory({task: row for task, row in memory.rows.items() if task not in changed})
