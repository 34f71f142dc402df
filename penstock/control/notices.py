"""What a user must hear of, once: a constraint that cannot be kept, data that are missing, and their end."""

from penstock.control.engine import Effect
from penstock.control.loop import Cycle
from penstock.control.settling import GUARD
from penstock.policy.decision import Decision
from penstock.policy.guards.bounds import Bounds
from penstock.policy.guards.slot_budget import SlotBudget
from penstock.policy.guards.warm_up import WarmUp

# Guards that look at the data before the policy is asked: their refusals mean that nothing was decided.
_INSPECTORS = ("missing_data", "stale_data")
# After a boundary, and while Java compiles, an interval says little of the load.
_UNUSUAL = (GUARD, WarmUp.name)
# Guards that may take from a decision what a constraint needs.
_LIMITS = (Bounds.name, SlotBudget.name)
# A flow that has just been started has nothing to show for an interval or two.
_AT_THE_START = 3
# What comes and goes is told once: it is over when it has not been there for so many decisions.
_CALM = 6


class Notices:
    """Turns cycles into messages; what lasts, or comes and goes, is told when it begins and when it ends."""

    def __init__(self) -> None:
        self._blind = _Episode(
            "nothing is decided, the configuration stays",
            "measurements are complete again",
            patience=_AT_THE_START,
        )
        self._infeasible = _Episode(
            "constraints cannot be kept with the replicas allowed", "constraints can be kept again"
        )
        self._short = _Episode("there are not enough task slots", "there are enough task slots again")

    def of(self, cycle: Cycle) -> list[str]:
        """What is new in this cycle."""
        decision, effect = cycle.decision, cycle.effect
        if any(refusal.guard in _UNUSUAL for refusal in decision.refused):
            return []
        missing = why_blind(decision)
        if missing is not None:
            return self._blind.told(missing)
        problem = None if effect is None else effect.problem
        return [
            *self._blind.told(None),
            *self._infeasible.told(None if decision.feasible else _obstacle(decision)),
            *self._short.told(None if effect is None else _granted(effect)),
            *([] if problem is None else [f"a decision was not carried out: {problem}"]),
        ]


class _Episode:
    """A state of which somebody must know; `patience` is how many decisions it may last at first, untold."""

    def __init__(self, begins: str, ends: str, patience: int = 1) -> None:
        self._begins = begins
        self._ends = ends
        self._patience = patience
        self._there = 0
        self._calm = 0
        self._is_told = False

    def told(self, why: str | None) -> list[str]:
        """What to say now; `why` is None when the state is not there."""
        if why is not None:
            self._calm = 0
            self._there += 1
            if self._is_told or self._there < self._patience:
                return []
            self._is_told = True
            return [f"{self._begins}: {why}"]
        self._there, self._patience = 0, 1
        self._calm += 1
        if not self._is_told or self._calm < _CALM:
            return []
        self._is_told = False
        return [self._ends]


def why_blind(decision: Decision) -> str | None:
    """Why nothing could be decided on this snapshot, or None."""
    found = [refusal.why for refusal in decision.refused if refusal.guard in _INSPECTORS]
    return found[0] if found else None


def _obstacle(decision: Decision) -> str:
    """The last word on it: a refusal by a limit, or a reason that speaks of it, or else the last reason."""
    limits = [refusal.why for refusal in decision.refused if refusal.guard in _LIMITS]
    spoken = [reason.why for reason in decision.reasons if reason.rule == "infeasible"]
    words = limits or spoken or [reason.why for reason in decision.reasons]
    return words[-1] if words else "no reason is known"


def _granted(effect: Effect) -> str | None:
    return ", ".join(f"{task} gets {count}" for task, count in effect.limited.items()) or None
