"""What a replica and a channel report for an interval; reports of one replica add up to a longer interval."""

from collections.abc import Sequence
from typing import TypeVar

import msgspec

from penstock.stats.channel import ChannelMoments
from penstock.stats.key_load import GroupTime, KeyLoad, merged_times
from penstock.stats.moments import Moments
from penstock.stats.rates import InstanceRates

NOTHING = Moments()
FEW_ENVELOPES = 5


class ReplicaReport(msgspec.Struct, frozen=True, kw_only=True):
    """One replica of a task. Times are in ms; `backlog` is what waits at the end of the interval, and
    `lag_items` what a source could read then and had not.

    `envelopes` is how many came: the items of one arrive together. `due_s` is the span of the due times of
    what a source sent: longer than the interval while it catches up, shorter while it is held back. `sent` is
    how many items it put into each of its streams, a copy for every receiver of a broadcast; together they
    are what it emitted. `keyed` is what went into streams by key, by group; `group_times` how long those of
    the timed items took that came by key.
    """

    task: str
    replica: int
    rates: InstanceRates
    service_ms: Moments = NOTHING
    interarrival_ms: Moments = NOTHING
    envelopes: int | None = None
    queue_wait_ms: Moments = NOTHING
    latency_ms: Moments = NOTHING
    lag_ms: Moments = NOTHING
    lag_items: int | None = None
    due_s: float | None = None
    cpu_s: float | None = None
    backlog: int | None = None
    baseline_service_ms: float | None = None
    worker: str | None = None
    sent: dict[str, int] = {}
    keyed: dict[str, KeyLoad] = {}
    group_times: dict[int, GroupTime] = {}

    @property
    def gap_ms(self) -> float | None:
        """A, the mean time between two items.

        A few large envelopes, one right after the other, tell how they were sent and not how much comes: then
        the items are spread over the interval at least. Many that have waited together for room may have come
        together too: then over half of it.
        """
        gap_ms = self.interarrival_ms.mean
        if gap_ms is None or self.envelopes is None:
            return gap_ms
        spread_ms = 1000.0 * self.rates.window_s / self.interarrival_ms.count
        return max(gap_ms, spread_ms if self.envelopes < FEW_ENVELOPES else spread_ms / 2)

    @property
    def arrival_per_s(self) -> float | None:
        """lambda = 1 / A: items that arrive per second."""
        return _per_s(self.gap_ms)

    @property
    def due_per_s(self) -> float | None:
        """Items that a source would send per second if nothing held it back; each counts once, whatever the
        number of streams it leaves on."""
        return self.rates.processed / self.due_s if self.due_s is not None and self.due_s > 0 else None

    @property
    def mean_service_ms(self) -> float | None:
        """S, the mean over all items."""
        return mean_of_all_ms(self.service_ms, self.rates)

    @property
    def service_per_s(self) -> float | None:
        """mu = 1 / S: the most items it could serve per second."""
        return _per_s(self.mean_service_ms)

    @property
    def utilization(self) -> float | None:
        """rho = S / A (thesis, appendix A); the share of useful time where one of the two is unknown."""
        service_ms, gap_ms = self.mean_service_ms, self.gap_ms
        if service_ms is not None and gap_ms:
            return service_ms / gap_ms
        # The time of a long envelope counts when it is done, so it may be longer than the interval.
        return min(1.0, self.rates.useful_s / self.rates.window_s) if self.rates.window_s > 0 else None

    @property
    def cpu(self) -> float | None:
        """The share of a core that was used."""
        if self.cpu_s is None or self.rates.window_s <= 0:
            return None
        return self.cpu_s / self.rates.window_s

    def merged(self, later: "ReplicaReport") -> "ReplicaReport":
        """This interval and a later one of the same replica."""
        return ReplicaReport(
            task=self.task,
            replica=self.replica,
            rates=self.rates.merged(later.rates),
            service_ms=self.service_ms.merged(later.service_ms),
            interarrival_ms=self.interarrival_ms.merged(later.interarrival_ms),
            envelopes=_sum(self.envelopes, later.envelopes),
            queue_wait_ms=self.queue_wait_ms.merged(later.queue_wait_ms),
            latency_ms=self.latency_ms.merged(later.latency_ms),
            lag_ms=self.lag_ms.merged(later.lag_ms),
            lag_items=later.lag_items,
            due_s=_due_s([self, later]),
            cpu_s=_sum(self.cpu_s, later.cpu_s),
            backlog=later.backlog,
            baseline_service_ms=later.baseline_service_ms,
            worker=later.worker,
            sent={name: self.sent.get(name, 0) + count for name, count in later.sent.items()}
            | {name: count for name, count in self.sent.items() if name not in later.sent},
            keyed={
                name: self.keyed.get(name, KeyLoad()).merged(later.keyed.get(name, KeyLoad()))
                for name in {**self.keyed, **later.keyed}
            },
            group_times=merged_times(self.group_times, later.group_times),
        )


def mean_of_all_ms(timed: Moments, rates: InstanceRates) -> float | None:
    """The mean service time of all items, in ms: useful time over items, once some of them were timed.

    Envelopes are timed whole, so this misses no item. The few that are timed by themselves tell how service
    times vary; their mean is a guess, and too high for short tasks, because reading a clock takes time too.
    """
    return timed.mean if timed.mean is None or not rates.processed else rates.useful_ms_per_item


def _due_s(reports: Sequence[ReplicaReport]) -> float | None:
    """Reports without an item have no span of due times, and add none."""
    spans = [report.due_s for report in reports if report.rates.processed]
    known = [span for span in spans if span is not None]
    return sum(known) if known and len(known) == len(spans) else None


N = TypeVar("N", int, float)


def _sum(left: N | None, right: N | None) -> N | None:
    return None if left is None or right is None else left + right


def _per_s(interval_ms: float | None) -> float | None:
    return 1000.0 / interval_ms if interval_ms else None


class ChannelReport(msgspec.Struct, frozen=True, kw_only=True):
    """One channel: the stream, the replicas at its ends, and where the time of its items went.

    `worker` is the executor of the receiver, which did the sums.
    """

    stream: str
    sender: int
    receiver: int
    times: ChannelMoments
    worker: str | None = None

    def merged(self, later: "ChannelReport") -> "ChannelReport":
        """This interval and a later one of the same channel."""
        return ChannelReport(
            stream=self.stream,
            sender=self.sender,
            receiver=self.receiver,
            times=self.times.merged(later.times),
            worker=later.worker,
        )
