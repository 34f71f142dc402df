"""The statistics reporter of one replica: callbacks while it works, a report when an interval ends.

Thesis, section 4.4.1. The caller passes the times, in nanoseconds of one clock: `arrived` for an envelope and
`worked` when it is done; for a sampled item `read` and any number of `wrote`; `served` for many of them
together. What is sampled is summed up when the interval ends: the task does not wait for arithmetic.
"""

from collections.abc import Iterable, Mapping

from penstock.stats.arrivals import Arrivals
from penstock.stats.baseline import Baseline
from penstock.stats.key_load import GroupTime, KeyLoad
from penstock.stats.moments import Moments, moments_of_ns
from penstock.stats.rates import InstanceRates
from penstock.stats.report import ReplicaReport, mean_of_all_ms
from penstock.stats.snapshot_structs import LatencyKind
from penstock.stats.task_latency import ReadWrite

NS_PER_S = 1e9


class ReplicaReporter:
    """Measures one replica."""

    def __init__(self, task: str, replica: int, *, latency_kind: LatencyKind, concurrency: int = 1) -> None:
        self._task, self._replica = task, replica
        self._concurrency = concurrency
        self._gathering = ReadWrite() if latency_kind == "read_write" else None
        self._arrivals = Arrivals()
        self._waited_ns: list[int] = []
        self._served_ns: list[int] = []
        self._took_ns: list[int] = []
        self._lagged_ns: list[int] = []
        self._due_ns: int | None = None
        self._due_before_ns: int | None = None
        self._baseline = Baseline()
        self._useful_ns = self._processed = self._emitted = self._envelopes = 0

    @property
    def processed(self) -> int:
        """The items of envelopes since the last report."""
        return self._processed

    @property
    def useful_ns(self) -> int:
        """The time spent on envelopes since the last report."""
        return self._useful_ns

    def arrived(self, now_ns: int, items: int = 1) -> None:
        """An envelope with `items` items is in the queue."""
        self._arrivals.arrived(now_ns, items)
        self._envelopes += 1

    def read(self, now_ns: int) -> None:
        """The task takes a sampled item."""
        if self._gathering is not None:
            self._gathering.read(now_ns)

    def wrote(self, now_ns: int) -> None:
        """The task emits an item."""
        if self._gathering is not None:
            self._gathering.written(now_ns)

    def served(
        self, service_ns: Iterable[int], waited_ns: Iterable[int], took_ns: Iterable[int] | None = None
    ) -> None:
        """How long sampled items kept the task busy, and how long they had waited in the queue.

        `took_ns` is how long each was in the task, which is more if several were in it together. Of a replica
        that serves several at once an item takes a share of its capacity: so much shorter is its service
        time, while its latency is all of the time it took.
        """
        service_ns = [*service_ns]
        self._served_ns += service_ns
        self._took_ns += service_ns if took_ns is None else took_ns
        self._waited_ns += waited_ns

    def lagged(self, lags_ns: Iterable[int]) -> None:
        """A source sent sampled items, each so long after it was due."""
        self._lagged_ns += lags_ns

    def due_between(self, first_ns: int, last_ns: int) -> None:
        """A source has sent items, the first and the last of which were due then."""
        if self._due_before_ns is None:
            self._due_before_ns = first_ns
        self._due_ns = last_ns if self._due_ns is None else max(last_ns, self._due_ns)

    def worked(self, useful_ns: int, processed: int, emitted: int) -> None:
        """An envelope was worked off: time spent on it without any waiting, items in and items out."""
        self._useful_ns += useful_ns
        self._processed += processed
        self._emitted += emitted

    def report(
        self,
        window_s: float,
        *,
        cpu_s: float | None = None,
        backlog: int | None = None,
        lag_items: int | None = None,
        sent: Mapping[str, int] | None = None,
        keyed: Mapping[str, KeyLoad] | None = None,
        group_times: Mapping[int, GroupTime] | None = None,
    ) -> ReplicaReport:
        """What was measured since the last report, `window_s` seconds ago; `sent` into each stream.

        `keyed` is what was sent by key, `group_times` how long timed items took that came by key.
        """
        service_ms = moments_of_ns([served_ns // self._concurrency for served_ns in self._served_ns])
        rates = InstanceRates(
            window_s=window_s,
            useful_s=self._useful_ns / NS_PER_S,
            processed=self._processed,
            emitted=self._emitted,
        )
        mean_ms = mean_of_all_ms(service_ms, rates)
        if mean_ms is not None:
            self._baseline.add(mean_ms)
        report = ReplicaReport(
            task=self._task,
            replica=self._replica,
            rates=rates,
            service_ms=service_ms,
            interarrival_ms=self._arrivals.take(),
            envelopes=self._envelopes,
            queue_wait_ms=moments_of_ns(self._waited_ns),
            latency_ms=self._latency_ms(),
            lag_ms=moments_of_ns(self._lagged_ns),
            lag_items=lag_items,
            due_s=self._take_due_s(),
            cpu_s=cpu_s,
            backlog=backlog,
            baseline_service_ms=self._baseline.service_ms,
            sent={} if sent is None else dict(sent),
            keyed={} if keyed is None else dict(keyed),
            group_times={} if group_times is None else dict(group_times),
        )
        self._served_ns, self._took_ns, self._waited_ns, self._lagged_ns = [], [], [], []
        self._useful_ns = self._processed = self._emitted = self._envelopes = 0
        return report

    def _take_due_s(self) -> float | None:
        before_ns, self._due_before_ns = self._due_before_ns, self._due_ns
        return None if before_ns is None or self._due_ns is None else (self._due_ns - before_ns) / NS_PER_S

    def _latency_ms(self) -> Moments:
        return moments_of_ns(self._took_ns) if self._gathering is None else self._gathering.take()
