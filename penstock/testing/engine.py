"""An engine without a flow: shows what a function says, and does at once what it is told."""

from collections.abc import Callable, Mapping

from penstock.control.engine import Boundary, Effect
from penstock.policy.decision import Decision
from penstock.stats.snapshot import Snapshot

Show = Callable[[int, Mapping[str, int]], Snapshot | None]


class FakeEngine:
    """`show(interval, replicas)` makes the snapshot of each interval; None ends the flow.

    `replicas` are those of the decision before; `applied` are all decisions so far. `clock` tells the seconds
    that the intervals shown so far took. With `gap_ms`, every change of replicas takes a boundary.
    """

    def __init__(
        self, show: Show, replicas: Mapping[str, int] | None = None, *, gap_ms: float | None = None
    ) -> None:
        self._show = show
        self._number = 0
        self._passed_s = 0.0
        self._gap_ms = gap_ms
        self._boundary: Boundary | None = None
        self.replicas = dict(replicas or {})
        self.applied: list[Decision] = []

    def clock(self) -> float:
        """The time, in seconds since the start."""
        return self._passed_s

    def observe(self) -> Snapshot | None:
        """The next snapshot, without any waiting."""
        snapshot = self._show(self._number, self.replicas)
        self._number += 1
        if snapshot is not None:
            self._passed_s += snapshot.interval_s
        return snapshot

    def apply(self, decision: Decision) -> Effect | None:
        """Take over the replicas of the decision."""
        self.applied.append(decision)
        changed = {**self.replicas, **decision.parallelism} != self.replicas
        self.replicas.update(decision.parallelism)
        if not changed:
            return None
        if self._gap_ms is not None:
            self.stand_still(self._gap_ms, self._passed_s)
        return Effect(after_ms=0.0, gap_ms=self._gap_ms)

    def stand_still(self, gap_ms: float, ended_at_s: float) -> None:
        """A boundary, as the timer of commits begins one."""
        self._boundary = Boundary(ended_at_s=ended_at_s, gap_ms=gap_ms)

    def boundary(self) -> Boundary | None:
        """The last one so far."""
        return self._boundary
