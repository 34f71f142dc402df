"""What the controller decides on an interval, and nothing of how it is observed or carried out.

So a recording that is decided again gives the decisions of its run: both use this.
"""

from typing import Generic, TypeVar

from penstock.control.settling import undecided
from penstock.policy.decision import Decision, Reason
from penstock.policy.keep import keep
from penstock.policy.port import Policy
from penstock.stats.snapshot import Snapshot

M = TypeVar("M")
OFF = "off"


class Decider(Generic[M]):
    """A policy with its memory; intervals that a boundary disturbed are kept from it."""

    def __init__(self, policy: Policy[M]) -> None:
        self._policy = policy
        self._memory = policy.initial_memory()

    def decide(
        self, snapshot: Snapshot, stood_still_ms: float | None = None, *, is_asked: bool = True
    ) -> Decision:
        """On the next interval; at a boundary that disturbed it the sources stood still for so long.

        A policy that is off is not asked.
        """
        if not is_asked:
            return keep(snapshot, self._policy.name, [Reason(rule=OFF, why="no action: the policy is off")])
        if stood_still_ms is not None:
            return undecided(snapshot, self._policy.name, stood_still_ms)
        decision, self._memory = self._policy.decide(snapshot, self._memory)
        return decision
