"""What is measured around a boundary is the boundary's doing, and not to be decided on.

While a batch ends and the next begins, no source reads; what was due meanwhile comes in a burst. A policy
that took this for load would add replicas, perhaps grow a pool, and so cause the next boundary.
"""

from penstock.policy.decision import Decision, Reason, Refusal
from penstock.policy.keep import keep
from penstock.stats.snapshot import Snapshot

SETTLE_S = 2.0
GUARD = "boundary"


class Settling:
    """Remembers the last boundary; intervals that begin less than `settle_s` after it are disturbed."""

    def __init__(self, settle_s: float = SETTLE_S) -> None:
        self._settle_s = settle_s
        self._calm_at_s: float | None = None
        self._gap_ms = 0.0

    def note(self, gap_ms: float, at_s: float) -> None:
        """A boundary is over at `at_s`, after the sources stood still for that long."""
        self._calm_at_s = at_s + self._settle_s
        self._gap_ms = gap_ms

    def refused(self, snapshot: Snapshot, policy: str, now_s: float) -> Decision | None:
        """The decision to leave everything as it is, if the interval that ends now was disturbed."""
        if self._calm_at_s is None or now_s - snapshot.interval_s >= self._calm_at_s:
            return None
        why = f"the sources stood still for {self._gap_ms:.0f} ms at a boundary"
        reason = Reason(rule=GUARD, why=f"no action: {why}")
        return keep(snapshot, policy, [reason], refused=[Refusal(guard=GUARD, why=why)])
