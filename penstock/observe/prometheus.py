"""A running flow as metrics that Prometheus can scrape: on request, and on the loopback interface by default.

What is measured (latencies, rates, utilization) is the mean since the scrape before, over a second at least.
What was not measured is absent.
"""

import threading
import time
from collections.abc import Callable, Iterator, Mapping
from typing import Protocol

from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, SummaryMetricFamily
from prometheus_client.metrics_core import Metric
from prometheus_client.registry import Collector

from penstock.control.decision_log import Entry
from penstock.observe.progress import Status
from penstock.observe.reported import CommitTotals, Metrics, TaskMetrics
from penstock.observe.view import View
from penstock.policy.measured import sequence_latency_ms
from penstock.stats.snapshot import Snapshot, StreamStats, TaskStats
from penstock.wire.reports import ShuffleHeld

_SHORTEST_S = 1.0


class Observable(Protocol):
    """What is asked of a running flow."""

    @property
    def status(self) -> Status:
        """What it is doing."""
        ...

    def metrics(self) -> Metrics:
        """Totals of now."""
        ...

    def decisions(self) -> list[Entry]:
        """What its controller decided."""
        ...

    def view(self) -> View:
        """To look at intervals of one's own."""
        ...


class FlowCollector(Collector):
    """Makes the metrics when they are asked for."""

    def __init__(self, job: Observable, clock: Callable[[], float] = time.monotonic) -> None:
        self._job = job
        self._clock = clock
        self._view = job.view()
        self._looked_s = clock()
        self._latest: Snapshot | None = None
        self._lock = threading.Lock()  # several may scrape at once

    def describe(self) -> list[Metric]:
        """Nothing in advance: the names do not depend on the flow, the labels do."""
        return []

    def collect(self) -> Iterator[Metric]:
        """All metrics of now."""
        job = self._job
        running = job.status.state == "running"
        yield GaugeMetricFamily("penstock_running", "1 while the flow runs.", value=float(running))
        yield from totals(job.metrics())
        decisions = CounterMetricFamily("penstock_decisions", "Decisions of the controller.")
        entries = job.decisions()
        decisions.add_metric([], entries[-1].number + 1 if entries else 0)
        yield decisions
        snapshot = self._look()
        if snapshot is not None:
            yield from measured(snapshot)

    def _look(self) -> Snapshot | None:
        with self._lock:
            now_s = self._clock()
            if now_s - self._looked_s >= _SHORTEST_S:
                self._latest = self._view.snapshot(now_s - self._looked_s)
                self._looked_s = now_s
            return self._latest


TaskTotal = Callable[[TaskMetrics], int]
TaskGauge = Callable[[TaskStats, Snapshot], float | None]
StreamGauge = Callable[[StreamStats], float | None]

TASK_TOTALS: tuple[tuple[str, str, TaskTotal], ...] = (
    ("items_in", "Items taken in.", lambda task: task.items_in),
    ("items_out", "Items sent on.", lambda task: task.items_out),
    ("items_skipped", "Items skipped because of an error.", lambda task: task.skipped),
    ("items_dead_lettered", "Items written to dead letters.", lambda task: task.dead_lettered),
    ("restarts", "Worker processes that died and were replaced.", lambda task: task.restarts),
)
TASK_GAUGES: tuple[tuple[str, str, TaskGauge], ...] = (
    (
        "items_per_second",
        "Items per second, all replicas together.",
        lambda task, all_: None if task.processed_total is None else task.processed_total / all_.interval_s,
    ),
    ("utilization_ratio", "Share of time the average replica is busy.", lambda task, _: task.utilization),
    (
        "queue_wait_seconds",
        "Time an item waits in the queue.",
        lambda task, _: _seconds(task.queue_wait_ms),
    ),
    (
        "service_seconds",
        "Time a replica is busy with an item.",
        lambda task, _: _seconds(task.service_ms),
    ),
    ("replicas", "Active replicas.", lambda task, _: task.parallelism),
    ("pool_replicas", "Active replicas and those held ready.", lambda task, _: task.pool),
    ("state_bytes", "Bytes of its state in the files of the last commit.", lambda task, _: task.state_bytes),
    (
        "heaviest_group_ratio",
        "Share of its items that went to the heaviest of its groups of keys.",
        lambda task, _: next((share for _, share in task.heaviest_groups(1)), None),
    ),
)
SOURCE_GAUGES: tuple[tuple[str, str, TaskGauge], ...] = (
    ("lag_items", "Items that are there and not sent on.", lambda task, _: task.lag_items),
    (
        "arriving_items_per_second",
        "Items that are due per second, sent on or not.",
        lambda task, _: task.rate_total,
    ),
)
STREAM_GAUGES: tuple[tuple[str, str, StreamGauge], ...] = (
    (
        "batch_lifetime_seconds",
        "How long envelopes collect items.",
        lambda stream: _seconds(stream.batch_lifetime_ms),
    ),
    (
        "latency_seconds",
        "From leaving a task to entering the next.",
        lambda stream: _seconds(stream.latency_ms),
    ),
    (
        "queue_items",
        "Items that wait before its receivers.",
        lambda stream: None if stream.queue is None else stream.queue.items,
    ),
    (
        "queue_bytes",
        "Bytes of the envelopes that wait before its receivers.",
        lambda stream: None if stream.queue is None else stream.queue.bytes,
    ),
    (
        "queue_age_seconds",
        "How long the oldest of them has waited.",
        lambda stream: None if stream.queue is None else _seconds(stream.queue.age_ms),
    ),
)


FLOW_TOTALS: tuple[tuple[str, str, Callable[[Metrics], float]], ...] = (
    ("restarts", "How often the flow was started again at its last commit.", lambda all_: all_.restarts),
    ("down_seconds", "For how long the flow did not run because of that.", lambda all_: all_.down_s),
    ("items_replayed", "Items that sources read again because of that.", lambda all_: all_.replayed),
)


COMMIT_TOTALS: tuple[tuple[str, str, Callable[[CommitTotals], float]], ...] = (
    ("commits", "Commits by epoch marks.", lambda commits: commits.count),
    (
        "epochs_void",
        "Epochs that were not committed, because a store was full.",
        lambda commits: commits.voids,
    ),
)


SHUFFLE_GAUGES: tuple[tuple[str, str, Callable[[ShuffleHeld], float]], ...] = (
    ("bytes", "Bytes of the rows that wait between tasks.", lambda held: held.bytes),
    ("limit_bytes", "How many they may be.", lambda held: held.limit_bytes),
)


def totals(metrics: Metrics) -> Iterator[Metric]:
    """Items, failures, who is paused, what waits, and the latency of samples from due time to each sink."""
    for name, text, of_flow in FLOW_TOTALS:
        counter = CounterMetricFamily(f"penstock_{name}", text)
        counter.add_metric([], of_flow(metrics))
        yield counter
    if metrics.commits is not None:
        yield from _of_commits(metrics.commits)
    for name, text, total in TASK_TOTALS:
        family = CounterMetricFamily(f"penstock_task_{name}", text, labels=["task"])
        for task, numbers in metrics.tasks.items():
            family.add_metric([task], total(numbers))
        yield family
    for name, text, of_shuffle in SHUFFLE_GAUGES:
        gauge = _Gauge(f"penstock_executor_shuffle_{name}", text, "executor")
        for executor, held in metrics.shuffle.items():
            gauge.add(executor, of_shuffle(held))
        yield gauge.family
    refused = CounterMetricFamily(
        "penstock_executor_connections_refused",
        "Connections closed because of what came over them.",
        labels=["executor"],
    )
    for executor, count in metrics.refused.items():
        refused.add_metric([executor], count)
    yield refused
    paused = GaugeMetricFamily("penstock_task_paused", "1 while a source is paused, else 0.", labels=["task"])
    for task, numbers in metrics.tasks.items():
        paused.add_metric([task], float(numbers.paused))
    yield paused
    latency = SummaryMetricFamily(
        "penstock_sink_latency_seconds", "Of sampled items, from due time to the sink.", labels=["sink"]
    )
    for sink, sketch in metrics.latency.items():
        latency.add_metric([sink], sketch.count, sketch.total / 1000)
    yield latency


def _of_commits(commits: CommitTotals) -> Iterator[Metric]:
    """How many there were, and of the last one how long ago it was and how long it took."""
    for name, text, of_commits in COMMIT_TOTALS:
        counter = CounterMetricFamily(f"penstock_{name}", text)
        counter.add_metric([], of_commits(commits))
        yield counter
    if commits.last_s is None or commits.took_ms is None:
        return
    age = GaugeMetricFamily("penstock_commit_age_seconds", "Time since the last commit by an epoch mark.")
    age.add_metric([], time.monotonic() - commits.last_s)
    yield age
    epoch = GaugeMetricFamily("penstock_commit_epoch", "The number of its epoch.")
    epoch.add_metric([], commits.epoch or 0)
    yield epoch
    took = GaugeMetricFamily("penstock_commit_duration_seconds", "From its order until it was in the log.")
    took.add_metric([], commits.took_ms / 1000)
    yield took


def measured(snapshot: Snapshot) -> Iterator[Metric]:
    """What changes: constraints against their bounds, then tasks and streams."""
    bound = _Gauge("penstock_constraint_bound_seconds", "The latency that must be kept.", "constraint")
    kept = _Gauge("penstock_constraint_latency_seconds", "The mean latency that was measured.", "constraint")
    p95 = _Gauge("penstock_constraint_p95_seconds", "The 95th percentile that was measured.", "constraint")
    p99 = _Gauge("penstock_constraint_p99_seconds", "The 99th percentile that was measured.", "constraint")
    held = _Gauge("penstock_constraint_held", "1 if it was held over its last window, else 0.", "constraint")
    for constraint in snapshot.constraints:
        bound.add(constraint.name, _seconds(constraint.latency_ms))
        kept.add(constraint.name, _seconds(sequence_latency_ms(snapshot, constraint)))
        p95.add(constraint.name, _seconds(constraint.p95_ms))
        p99.add(constraint.name, _seconds(constraint.p99_ms))
        held.add(constraint.name, None if constraint.held is None else float(constraint.held))
    yield from (gauge.family for gauge in (bound, kept, p95, p99, held))
    sources = {name: task for name, task in snapshot.tasks.items() if task.kind == "source"}
    yield from _by_task("task", TASK_GAUGES, snapshot.tasks, snapshot)
    yield from _by_task("source", SOURCE_GAUGES, sources, snapshot)
    for name, text, of_stream in STREAM_GAUGES:
        gauge = _Gauge(f"penstock_stream_{name}", text, "stream")
        for stream in snapshot.streams:
            gauge.add(stream.name, of_stream(stream))
        yield gauge.family


def _by_task(
    label: str,
    gauges: tuple[tuple[str, str, TaskGauge], ...],
    tasks: Mapping[str, TaskStats],
    snapshot: Snapshot,
) -> Iterator[Metric]:
    for name, text, of_task in gauges:
        gauge = _Gauge(f"penstock_{label}_{name}", text, label)
        for task, stats in tasks.items():
            gauge.add(task, of_task(stats, snapshot))
        yield gauge.family


class _Gauge:
    """A gauge with one label, which leaves out what was not measured."""

    def __init__(self, name: str, text: str, label: str) -> None:
        self.family = GaugeMetricFamily(name, text, labels=[label])

    def add(self, owner: str, value: float | None) -> None:
        if value is not None:
            self.family.add_metric([owner], value)


def _seconds(value_ms: float | None) -> float | None:
    return None if value_ms is None else value_ms / 1000
