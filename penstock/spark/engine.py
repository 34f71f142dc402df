"""A running flow as the controller sees it: the Engine port on Spark."""

import time
from collections.abc import Callable

from penstock.policy.decision import Decision
from penstock.spark.job import Job
from penstock.stats.snapshot import Snapshot


class SparkEngine:
    """Waits for the end of each interval, shows what it measured, and turns the switches of the flow."""

    def __init__(
        self,
        job: Job,
        interval_s: float,
        *,
        clock: Callable[[], float] = time.monotonic,
        only_recommend: bool = False,
    ) -> None:
        self._job = job
        self._interval_s = interval_s
        self._clock = clock
        self._only_recommend = only_recommend
        self._since_s = clock()

    def observe(self) -> Snapshot | None:
        """What the interval that ends now showed; None when the flow is over."""
        if self._job.await_end(self._since_s + self._interval_s - self._clock()):
            return None
        now_s = self._clock()
        snapshot = self._job.snapshot(now_s - self._since_s)
        self._since_s = now_s
        return snapshot

    def apply(self, decision: Decision) -> None:
        """Turn the switches, unless only recommendations are wanted."""
        if not self._only_recommend:
            self._job.adapt(decision.parallelism, decision.batch_lifetime_ms, decision.chains)
