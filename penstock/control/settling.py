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

    def refused(self, snapshot: Snapshot, policy: str, now_s: float) -> Decision | None:
        """The decision to leave everything as it is, if the interval that ends now was disturbed."""
        if self._last is None or now_s - snapshot.interval_s >= self._last.ended_at_s + self._settle_s:
            return None
        why = f"the sources stood still for {self._last.gap_ms:.0f} ms at a boundary"
        reason = Reason(rule=GUARD, why=f"no action: {why}")
        return keep(snapshot, policy, [reason], refused=[Refusal(guard=GUARD, why=why)])
