"""What a user must hear of, once: a constraint that cannot be kept, data that are missing, and their end."""

from penstock.control.loop import Cycle
from penstock.policy.decision import Decision

# Guards that look at the data before the policy is asked: their refusals mean that nothing was decided.
_INSPECTORS = ("missing_data", "stale_data")
# A flow that has just been started has nothing to show for an interval or two.
_AT_THE_START = 3


class Notices:
    """Turns cycles into messages; a state that goes on is told when it begins and when it ends."""

    def __init__(self) -> None:
        self._infeasible = False
        self._blind_for = 0
        self._patience = _AT_THE_START
        self._limited: dict[str, int] = {}

    def of(self, cycle: Cycle) -> list[str]:
        """What is new in this cycle."""
        return [*self._data(cycle), *self._feasibility(cycle), *self._effect(cycle)]

    def _data(self, cycle: Cycle) -> list[str]:
        missing = why_blind(cycle.decision)
        if missing is not None:
            self._blind_for += 1
            told = self._blind_for == self._patience
            return [f"nothing is decided, the configuration stays: {missing}"] if told else []
        told = self._blind_for >= self._patience
        self._blind_for, self._patience = 0, 1
        return ["measurements are complete again"] if told else []

    def _feasibility(self, cycle: Cycle) -> list[str]:
        if self._blind_for:
            return []  # a decision without data says nothing about what is feasible
        was, self._infeasible = self._infeasible, not cycle.decision.feasible
        if self._infeasible and not was:
            return [f"constraints cannot be kept with the replicas allowed: {_obstacle(cycle.decision)}"]
        return ["constraints can be kept again"] if was and not self._infeasible else []

    def _effect(self, cycle: Cycle) -> list[str]:
        effect = cycle.effect
        if effect is None:
            return []
        messages = [] if effect.problem is None else [f"a decision was not carried out: {effect.problem}"]
        was, self._limited = self._limited, effect.limited
        if effect.limited and effect.limited != was:
            granted = ", ".join(f"{task} gets {count}" for task, count in effect.limited.items())
            messages.append(f"there are not enough task slots: {granted}")
        return messages


def why_blind(decision: Decision) -> str | None:
    """Why nothing could be decided on this snapshot, or None."""
    found = [refusal.why for refusal in decision.refused if refusal.guard in _INSPECTORS]
    return found[0] if found else None


def _obstacle(decision: Decision) -> str:
    """The last word on it: a refusal by a limit, or else the last reason."""
    words = [refusal.why for refusal in decision.refused] or [reason.why for reason in decision.reasons]
    return words[-1] if words else "no reason is known"
