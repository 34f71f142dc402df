"""The statistics reporter of one replica: callbacks while it works, a report when an interval ends.

Thesis, section 4.4.1. The caller passes the times, in nanoseconds of one clock, and calls in this order:
`arrived` for an envelope, then for each of its items `read`, any number of `wrote`, and `ready`; `worked`
once for the envelope. `waited` is for items that carry a tag.
"""

from collections.abc import Callable

from penstock.stats.arrivals import Arrivals
from penstock.stats.baseline import Baseline
from penstock.stats.moments import Moments, OnlineMoments
from penstock.stats.rates import InstanceRates
from penstock.stats.report import ReplicaReport
from penstock.stats.sampling import Sampler
from penstock.stats.snapshot_structs import LatencyKind
from penstock.stats.task_latency import NS_PER_MS, ReadReady, ReadWrite

NS_PER_S = 1e9


class ReplicaReporter:
    """Measures one replica. `sampling` is the share of items timed; `uniform` gives random numbers."""

    def __init__(
        self,
        task: str,
        replica: int,
        *,
        latency_kind: LatencyKind,
        sampling: float,
        uniform: Callable[[], float],
        worker: str | None = None,
    ) -> None:
        self._task, self._replica, self._worker = task, replica, worker
        self._samplers = [Sampler(sampling, uniform) for _ in range(2)]
        self._service = ReadReady(self._samplers[0])
        self._gathering = ReadWrite(self._samplers[1]) if latency_kind == "read_write" else None
        self._arrivals = Arrivals()
        self._queue_wait_ms = OnlineMoments()
        self._baseline = Baseline()
        self._useful_ns = self._processed = self._emitted = 0

    def set_sampling(self, share: float) -> None:
        """Time another share of the items from now on."""
        for sampler in self._samplers:
            sampler.set_probability(share)

    def arrived(self, now_ns: int, items: int = 1) -> None:
        """An envelope with `items` items is in the queue."""
        self._arrivals.arrived(now_ns, items)

    def waited(self, arrived_ns: int, entered_ns: int) -> None:
        """A tagged item, which had arrived at `arrived_ns`, is about to enter the task."""
        self._queue_wait_ms.add(max(0, entered_ns - arrived_ns) / NS_PER_MS)

    def read(self, now_ns: int) -> None:
        """The task takes an item."""
        self._service.read(now_ns)
        if self._gathering is not None:
            self._gathering.read(now_ns)

    def wrote(self, now_ns: int) -> None:
        """The task emits an item."""
        if self._gathering is not None:
            self._gathering.written(now_ns)

    def ready(self, now_ns: int) -> None:
        """The task is done with the item."""
        self._service.ready(now_ns)

    def worked(self, useful_ns: int, processed: int, emitted: int) -> None:
        """An envelope was worked off: time spent on it without any waiting, items in and items out."""
        self._useful_ns += useful_ns
        self._processed += processed
        self._emitted += emitted

    def report(
        self, window_s: float, *, cpu_s: float | None = None, backlog: int | None = None
    ) -> ReplicaReport:
        """What was measured since the last report, `window_s` seconds ago."""
        service_ms = self._service.take()
        if service_ms.mean is not None:
            self._baseline.add(service_ms.mean)
        report = ReplicaReport(
            task=self._task,
            replica=self._replica,
            rates=InstanceRates(
                window_s=window_s,
                useful_s=self._useful_ns / NS_PER_S,
                processed=self._processed,
                emitted=self._emitted,
            ),
            service_ms=service_ms,
            interarrival_ms=self._arrivals.take(),
            queue_wait_ms=self._queue_wait_ms.take(),
            latency_ms=self._latency_ms(service_ms),
            cpu_s=cpu_s,
            backlog=backlog,
            baseline_service_ms=self._baseline.service_ms,
            worker=self._worker,
        )
        self._useful_ns = self._processed = self._emitted = 0
        return report

    def _latency_ms(self, service_ms: Moments) -> Moments:
        return service_ms if self._gathering is None else self._gathering.take()
