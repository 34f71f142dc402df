"""All tasks together never take more slots than there are.

A replica takes a slot, and tasks joined by forward streams share theirs. If the proposal needs more than the
budget, everything that shrinks does, and the slots that are left are shared among what wants to grow, in
proportion to how much it wants; single slots left over go to the largest remainders.
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar

import msgspec

from penstock.policy.decision import Decision
from penstock.policy.guards.port import Seen, StatelessGuard
from penstock.policy.guards.revise import allow
from penstock.policy.scaling import forward_groups
from penstock.stats.snapshot import Snapshot


@dataclass(frozen=True, slots=True)
class SlotBudget(StatelessGuard):
    """The guard `slot_budget`; None means that slots are not limited."""

    slots: int | None
    name: ClassVar[str] = "slot_budget"

    def review(self, seen: Seen, proposed: Decision, memory: None) -> tuple[Decision, None]:
        """Shorten scale-ups until everything fits."""
        if self.slots is None:
            return proposed, memory
        now = {name: task.parallelism for name, task in seen.snapshot.tasks.items()}
        wanted = {**now, **proposed.parallelism}
        units = _units(seen.snapshot)
        needed = sum(max(wanted[task] for task in unit) for unit in units)
        growth = {
            unit: max(wanted[task] for task in unit) - max(now[task] for task in unit) for unit in units
        }
        growing = {unit: more for unit, more in growth.items() if more > 0}
        if needed <= self.slots or not growing:
            return proposed, memory
        left = max(0, self.slots - (needed - sum(growing.values())))
        for unit, granted in _shared(growing, left).items():
            for task in unit:
                allowed = now[task] + granted
                if task in proposed.parallelism and allowed < proposed.parallelism[task]:
                    why = f"{needed} slots would be needed and there are {self.slots}"
                    proposed = allow(proposed, self.name, task, before=now[task], allowed=allowed, why=why)
        return msgspec.structs.replace(proposed, feasible=False), memory


def _units(snapshot: Snapshot) -> list[tuple[str, ...]]:
    """Tasks that share slots, in the order of the snapshot."""
    groups = [tuple(name for name in snapshot.tasks if name in group) for group in forward_groups(snapshot)]
    joined = {name for group in groups for name in group}
    return [*groups, *((name,) for name in snapshot.tasks if name not in joined)]


def _shared(wanted: Mapping[tuple[str, ...], int], available: int) -> dict[tuple[str, ...], int]:
    """Largest-remainder shares of `available`, none larger than what is wanted."""
    total = sum(wanted.values())
    exact = {unit: min(1.0, available / total) * more for unit, more in wanted.items()}
    granted = {unit: math.floor(share) for unit, share in exact.items()}
    by_remainder = sorted(wanted, key=lambda unit: granted[unit] - exact[unit])
    for unit in by_remainder[: max(0, min(available, total) - sum(granted.values()))]:
        granted[unit] += 1
    return granted
