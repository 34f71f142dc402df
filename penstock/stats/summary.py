"""Summaries: what all replicas of a task and all channels of a stream have in common.

Thesis, section 4.4.2: each executor makes a partial summary of the reports it has, and the driver merges them
into the global one. A value of a task is the mean over its replicas, each replica counting once, and a value
of a stream the mean over its channels:

    l_e = 1/n (l_e1 + ... + l_en)                                                                (4.2)

Sums are exact, so any order of merging, in any grouping, gives the same global summary to the last digit.
"""

from collections.abc import Iterable
from functools import reduce
from typing import Any, TypeVar

import msgspec

from penstock.stats.exact_sum import ExactSum, exact_sum
from penstock.stats.report import ChannelReport, ReplicaReport
from penstock.stats.snapshot_structs import InstanceStats


class Average(msgspec.Struct, frozen=True):
    """The mean and the largest of the values that were measured."""

    count: int = 0
    total: ExactSum = ExactSum()
    largest: float | None = None

    def plus(self, value: float | None) -> "Average":
        """One more value; None was not measured and does not count."""
        return self if value is None else self.merged(Average(1, exact_sum([value]), float(value)))

    def merged(self, other: "Average") -> "Average":
        """The values of both."""
        known = [value for value in (self.largest, other.largest) if value is not None]
        return Average(self.count + other.count, self.total.merged(other.total), max(known, default=None))

    @property
    def mean(self) -> float | None:
        """None when nothing was measured."""
        return self.total.value / self.count if self.count else None

    @property
    def sum(self) -> float | None:
        """None when nothing was measured."""
        return self.total.value if self.count else None


NOTHING = Average()


class TaskSummary(msgspec.Struct, frozen=True, kw_only=True):
    """A task over the replicas that reported; `instances` are these replicas by number."""

    service_ms: Average = NOTHING
    service_cv: Average = NOTHING
    interarrival_ms: Average = NOTHING
    interarrival_cv: Average = NOTHING
    queue_wait_ms: Average = NOTHING
    latency_ms: Average = NOTHING
    lag_ms: Average = NOTHING
    lag_items: Average = NOTHING
    due_per_s: Average = NOTHING
    utilization: Average = NOTHING
    cpu: Average = NOTHING
    useful_s: Average = NOTHING
    backlog: Average = NOTHING
    baseline_service_ms: Average = NOTHING
    processed: Average = NOTHING
    emitted: Average = NOTHING
    instances: dict[int, InstanceStats] = {}
    workers: dict[int, str] = {}


class StreamSummary(msgspec.Struct, frozen=True, kw_only=True):
    """A stream over the channels that reported, in ms, and over the senders that did: what they put in."""

    latency_ms: Average = NOTHING
    output_batch_ms: Average = NOTHING
    transport_ms: Average = NOTHING
    queue_wait_ms: Average = NOTHING
    emitted: Average = NOTHING


class Summary(msgspec.Struct, frozen=True):
    """Tasks and streams by name: partial if some replicas are missing, global if all are there."""

    tasks: dict[str, TaskSummary] = {}
    streams: dict[str, StreamSummary] = {}

    def merged(self, other: "Summary") -> "Summary":
        """What both say of disjoint sets of replicas and channels."""
        return Summary(_merged_by_name(self.tasks, other.tasks), _merged_by_name(self.streams, other.streams))


def summarise(replicas: Iterable[ReplicaReport], channels: Iterable[ChannelReport] = ()) -> Summary:
    """The summary of some reports, at most one for each replica and each channel."""
    summary = Summary()
    for report in replicas:
        sent = {name: StreamSummary(emitted=NOTHING.plus(count)) for name, count in report.sent.items()}
        summary = summary.merged(Summary({report.task: _task(report)}, sent))
    for channel in channels:
        summary = summary.merged(Summary({}, {channel.stream: _stream(channel)}))
    return summary


def summarise_executors(
    replicas: Iterable[ReplicaReport], channels: Iterable[ChannelReport] = ()
) -> dict[str | None, Summary]:
    """The partial summary of each executor, of the replicas that it runs and the channels that end there."""
    of_replicas, of_channels = list(replicas), list(channels)
    executors = {report.worker for report in of_replicas} | {report.worker for report in of_channels}
    return {
        executor: summarise(
            [report for report in of_replicas if report.worker == executor],
            [report for report in of_channels if report.worker == executor],
        )
        for executor in executors
    }


def merge_all(partial: Iterable[Summary]) -> Summary:
    """The global summary."""
    return reduce(Summary.merged, partial, Summary())


def _task(report: ReplicaReport) -> TaskSummary:
    rates = report.rates
    instance = InstanceStats(useful_s=rates.useful_s, processed=rates.processed, emitted=rates.emitted)
    return TaskSummary(
        service_ms=NOTHING.plus(report.mean_service_ms),
        service_cv=NOTHING.plus(report.service_ms.cv),
        interarrival_ms=NOTHING.plus(report.gap_ms),
        interarrival_cv=NOTHING.plus(report.interarrival_ms.cv),
        queue_wait_ms=NOTHING.plus(report.queue_wait_ms.mean),
        latency_ms=NOTHING.plus(report.latency_ms.mean),
        lag_ms=NOTHING.plus(report.lag_ms.mean),
        lag_items=NOTHING.plus(report.lag_items),
        due_per_s=NOTHING.plus(report.due_per_s),
        utilization=NOTHING.plus(report.utilization),
        cpu=NOTHING.plus(report.cpu),
        useful_s=NOTHING.plus(rates.useful_s),
        backlog=NOTHING.plus(report.backlog),
        baseline_service_ms=NOTHING.plus(report.baseline_service_ms),
        processed=NOTHING.plus(rates.processed),
        emitted=NOTHING.plus(rates.emitted),
        instances={report.replica: instance},
        workers={} if report.worker is None else {report.replica: report.worker},
    )


def _stream(report: ChannelReport) -> StreamSummary:
    times = report.times
    return StreamSummary(
        latency_ms=NOTHING.plus(times.latency_ms.mean),
        output_batch_ms=NOTHING.plus(times.output_batch_ms.mean),
        transport_ms=NOTHING.plus(times.transport_ms.mean),
        queue_wait_ms=NOTHING.plus(times.queue_wait_ms.mean),
    )


S = TypeVar("S", TaskSummary, StreamSummary)


def _merged_by_name(left: dict[str, S], right: dict[str, S]) -> dict[str, S]:
    merged = dict(left)
    for name, summary in right.items():
        merged[name] = _merged(merged[name], summary) if name in merged else summary
    return merged


def _merged(left: S, right: S) -> S:
    """Field by field: averages are merged, replicas by number are put together."""
    fields: dict[str, Any] = {}
    for name in left.__struct_fields__:
        one, two = getattr(left, name), getattr(right, name)
        fields[name] = one.merged(two) if isinstance(one, Average) else {**one, **two}
    return type(left)(**fields)
