"""What is measured around a boundary is the boundary's doing, and not to be decided on.

While a batch ends and the next begins, no source reads; what was due meanwhile comes in a burst. A policy
that took this for load would add replicas, perhaps grow a pool, and so cause the next boundary. Times are by
a clock that nobody sets: a step of the wall clock must neither hide a boundary nor freeze decisions.
"""

from penstock.control.engine import Boundary
from penstock.policy.decision import Decision, Reason, Refusal
from penstock.policy.keep import keep
from penstock.stats.snapshot import Snapshot

SETTLE_S = 2.0
GUARD = "boundary"


class Settling:
    """Remembers the last boundary; intervals that begin less than `settle_s` after it are disturbed."""

    def __init__(self, settle_s: float = SETTLE_S) -> None:
        self._settle_s = settle_s
        self._last: Boundary | None = None

    def note(self, boundary: Boundary | None) -> None:
        """A boundary has ended, perhaps one that is known already; None leaves what is known."""
        if boundary is not None:
            self._last = boundary

    def stood_still_ms(self, interval_s: float, now_s: float) -> float | None:
        """How long the sources did at the boundary that disturbed the interval ending now, None if none."""
        if self._last is None or now_s - interval_s >= self._last.ended_at_s + self._settle_s:
            return None
        return self._last.gap_ms


def undecided(snapshot: Snapshot, policy: str, stood_still_ms: float) -> Decision:
    """The decision to leave everything as it is, because a boundary disturbed the interval."""
    why = f"the sources stood still for {stood_still_ms:.0f} ms at a boundary"
    reason = Reason(rule=GUARD, why=f"no action: {why}")
    return keep(snapshot, policy, [reason], refused=[Refusal(guard=GUARD, why=why)])
