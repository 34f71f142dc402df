"""A running flow as the controller sees it: the Engine port in front of its handle."""

import time
from collections.abc import Callable, Mapping, Sequence
from typing import Protocol

from penstock.control.engine import Boundary, Effect
from penstock.control.pools import PoolKeeper, pools_of
from penstock.flow.errors import FlowError, JobFailed
from penstock.flow.layers import Layout
from penstock.policy.decision import Decision
from penstock.stats.snapshot import Snapshot
from penstock.wire.divisions import Span, Spans

_EFFECT_S = 5.0


class Steered(Protocol):
    """What the controller asks of the handle of a running flow."""

    @property
    def layout(self) -> Layout:
        """Where everything is placed now."""
        ...

    @property
    def slots(self) -> int:
        """The task slots that the flow may take."""
        ...

    @property
    def is_running(self) -> bool:
        """Whether there is something to steer."""
        ...

    def snapshot(self, interval_s: float) -> Snapshot:
        """What was measured since the last call."""
        ...

    def adapt(
        self,
        replicas: Mapping[str, int],
        lifetimes_ms: Mapping[str, float],
        chains: Sequence[Sequence[str]] | None = None,
        pools: Mapping[str, int] | None = None,
        tables: Mapping[str, Spans] | None = None,
    ) -> float | None:
        """Turn all switches of a decision at once; the gap in ms, None if none turned."""
        ...

    def await_effect(self, timeout_s: float) -> bool:
        """Wait until everybody obeys."""
        ...

    def last_boundary(self) -> Boundary | None:
        """The last boundary, over or not, by the monotonic clock."""
        ...

    def await_end(self, timeout_s: float | None) -> bool:
        """Whether the flow is over within that time."""
        ...


class FlowEngine:
    """Waits for the end of each interval, shows what it measured, and turns the switches of the flow.

    Replicas are granted from the pools; these grow and shrink with the need, within Spark's slots. Sources
    have as many replicas as they need: a change of theirs takes a boundary, which a pool shares.
    """

    def __init__(
        self,
        job: Steered,
        interval_s: float,
        *,
        shrink_pools_after_s: float,
        clock: Callable[[], float] = time.monotonic,
        only_recommend: bool = False,
    ) -> None:
        self._job = job
        self._interval_s = interval_s
        self._pools = PoolKeeper(shrink_pools_after_s)
        self._clock = clock
        self.only_recommend = only_recommend
        self._since_s = clock()

    def observe(self) -> Snapshot | None:
        """What the interval that ends now showed; None when the flow is over."""
        if self._job.await_end(self._since_s + self._interval_s - self._clock()):
            return None
        now_s = self._clock()
        snapshot = self._job.snapshot(now_s - self._since_s)
        self._since_s = now_s
        return snapshot

    def apply(self, decision: Decision) -> Effect | None:
        """Turn the switches, unless only recommendations are wanted; None if there was nothing to turn."""
        if self.only_recommend:
            return None
        try:
            return self._turned(decision)
        except (FlowError, JobFailed) as problem:
            if not self._job.is_running:
                return None  # it ends, and needs nobody any more
            return Effect(problem=str(problem))

    def boundary(self) -> Boundary | None:
        """The last one, whoever began it: a decision, the time between commits, or a user's call."""
        return self._job.last_boundary()

    def _turned(self, decision: Decision) -> Effect | None:
        began_s = self._clock()
        layout = self._job.layout
        pools = pools_of(layout)
        needs = {
            pool.task: max(
                decision.parallelism.get(name, 1 if pool.spares else pool.size)
                for name in layout.abreast_of(pool.task)
            )
            for pool in pools
        }
        plan = self._pools.plan(began_s, pools, needs, self._job.slots - layout.slots)
        granted = {
            name: plan.granted[task]
            for task in needs
            for name in layout.abreast_of(task)
            if name in decision.parallelism
        }
        tables = {
            name: tuple(Span(*span) for span in spans)
            for name, spans in decision.key_tables.items()
            if granted.get(name) == decision.parallelism[name]  # it is for so many replicas
        }
        gap_ms = self._job.adapt(
            granted, decision.batch_lifetime_ms, decision.chains or None, plan.sizes, tables
        )
        if gap_ms is None:
            return None
        in_effect = self._job.await_effect(_EFFECT_S)
        return Effect(
            after_ms=(self._clock() - began_s) * 1000 if in_effect else None,
            gap_ms=gap_ms or None,
            pools={
                pool.task: plan.sizes[pool.task] for pool in pools if pool.spares and pool.task in plan.sizes
            },
            limited={name: count for name, count in granted.items() if count < decision.parallelism[name]},
        )
