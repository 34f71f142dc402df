"""What a worker counts and times, and the report it makes of it once a second.

Timing is done for tagged items only, and for whole envelopes: an item that is not sampled costs nothing. The
task's thread measures and the control line takes the report, so both hold the lock, save for the list of
tagged items: the one only appends to it, the other takes it away whole and does the sums.
"""

import itertools
import os
import threading
import time
from collections.abc import Callable, Sequence
from statistics import fmean
from typing import Any, NamedTuple

import msgspec

from penstock.flow.graph import LatencyKind
from penstock.stats.channel import Passage, channel_moments
from penstock.stats.fair_share import fair_share
from penstock.stats.replica_reporter import ReplicaReporter
from penstock.stats.report import ChannelReport
from penstock.stats.sketch import Sketch
from penstock.wire.envelope import Envelope, Tag
from penstock.worker.failures import Failures
from penstock.worker.flow_time import UNKNOWN_NS
from penstock.worker.outbox import Outbox, OutStream

_serials = itertools.count()


class Timed(NamedTuple):
    """The times of a tagged item, in ns: emitted, shipped and due by the flow's clock, others by this one.

    `own_ns` is how long it took without the tasks chained behind it, `ahead_ns` how far this machine's clock
    was ahead of the flow's.
    """

    channel: tuple[int, int]
    emit_ns: int
    ship_ns: int
    arrived_ns: int
    entered_ns: int
    done_ns: int
    own_ns: int
    origin_ns: int
    ahead_ns: int | None


class Measurements:
    """One task: totals since it began in this process, and what the last interval showed."""

    def __init__(
        self,
        task: str,
        replica: int,
        latency: LatencyKind,
        sends: list[OutStream],
        failures: Failures,
        names: list[str],
        outbox: Outbox,
    ) -> None:
        self.items_in = 0
        self.chained_in = 0
        self._latency_ms = Sketch()
        self._task = task
        self._replica = replica
        self._sends = sends
        self._failures = failures
        self._names = names
        self._serial = next(_serials)
        self._outbox = outbox
        self._lock = threading.Lock()
        self._gathers = latency == "read_write"
        self._reporter = ReplicaReporter(task, replica, latency_kind=latency)
        self._since_s = time.monotonic()
        self._cpu_s = time.process_time()
        self._emitted = 0
        self._chained_counted = 0
        self._timed_items: list[Timed] = []
        self._lags_ns: list[int] = []

    def envelope_done(self, envelope: Envelope, arrived_ns: int, useful_ns: int) -> None:
        """An envelope was worked off in `useful_ns`, waiting for room in the output not counted."""
        count = len(envelope.items)
        with self._lock:
            self.items_in += count
            self._reporter.arrived(arrived_ns, count)
            self._reporter.worked(useful_ns, count, 0)

    def source_read(self, count: int, useful_ns: int, due_ns: Sequence[int] | None = None) -> None:
        """A source has read and sent items, which were due at `due_ns`."""
        with self._lock:
            if due_ns:
                self._reporter.due_between(due_ns[0], due_ns[-1])
            self.items_in += count
            self._reporter.worked(useful_ns, count, 0)

    def time_item(
        self, envelope: Envelope, tag: Tag, arrived_ns: int, step: Callable[[Any], None], item: Any
    ) -> None:
        """Run the step of a tagged item, and keep all its times."""
        entered_ns, done_ns, own_ns = self._timed(step, item)
        self._timed_items.append(
            Timed(
                (envelope.stream, envelope.sender),
                tag.emit_ns,
                envelope.ship_ns,
                arrived_ns,
                entered_ns,
                done_ns,
                own_ns,
                tag.origin_ns,
                self._outbox.time.ahead_ns,
            )
        )

    def time_chained(self, stream: int, origin_ns: int, step: Callable[[Any], None], item: Any) -> None:
        """The same for an item that a chained task was handed: it came without any delay."""
        entered_ns, done_ns, own_ns = self._timed(step, item)
        ahead_ns = self._outbox.time.ahead_ns
        at_ns = entered_ns if ahead_ns is None else entered_ns - ahead_ns
        channel = (stream, self._replica)
        self._timed_items.append(
            Timed(channel, at_ns, at_ns, entered_ns, entered_ns, done_ns, own_ns, origin_ns, ahead_ns)
        )
        self.chained_in += 1

    def _timed(self, step: Callable[[Any], None], item: Any) -> tuple[int, int, int]:
        """Run a step: when it began and ended, and how long it took without the tasks chained behind it."""
        outbox = self._outbox
        behind_ns, outbox.behind_ns = outbox.behind_ns, 0
        entered_ns = time.monotonic_ns()
        if self._gathers:
            with self._lock:
                self._reporter.read(entered_ns)
        step(item)
        done_ns = time.monotonic_ns()
        took_ns = done_ns - entered_ns
        own_ns = took_ns - outbox.behind_ns
        outbox.behind_ns = behind_ns + took_ns
        return entered_ns, done_ns, own_ns

    def _sum_up(self, timed: list[Timed]) -> list[ChannelReport]:
        """What the interval's tagged items showed; a time by a clock that is not known is left out."""
        by_share = [one for one in timed if one.origin_ns != UNKNOWN_NS]
        of_timers = [one for one in timed if one.origin_ns == UNKNOWN_NS]
        fair = fair_share(by_share, of_timers, self._reporter.processed)
        self._reporter.served([one.own_ns for one in fair], [one.entered_ns - one.arrived_ns for one in fair])
        channels: dict[tuple[int, int], list[Passage]] = {}
        is_last = not self._sends
        for one in timed:
            ahead_ns = one.ahead_ns
            if ahead_ns is None:
                continue
            if one.emit_ns != UNKNOWN_NS != one.ship_ns:
                passage = (one.emit_ns, one.ship_ns, one.arrived_ns - ahead_ns, one.entered_ns - ahead_ns)
                channels.setdefault(one.channel, []).append(passage)
            if is_last and one.origin_ns != UNKNOWN_NS:
                self._latency_ms.add((one.done_ns - ahead_ns - one.origin_ns) * 1e-6)
        return [
            ChannelReport(
                stream=self._names[stream],
                sender=sender,
                receiver=self._replica,
                times=channel_moments(passages),
            )
            for (stream, sender), passages in channels.items()
        ]

    def sent_late(self, lag_ns: int) -> None:
        """A source sends a tagged item, so long after it was due."""
        self._lags_ns.append(lag_ns)

    def wrote(self) -> None:
        """The task sent something: the end of read-write latencies."""
        with self._lock:
            self._reporter.wrote(time.monotonic_ns())

    def share_useful(self, chained: "Measurements") -> None:
        """A part of the time of envelopes belonged to a chained task; never more than there is."""
        with self._lock:
            self._reporter.worked(-chained.close_chained(self._reporter.useful_ns), 0, 0)

    def close_chained(self, most_ns: int) -> int:
        """Close the interval of a chained task: its items, and the time they took by those timed.

        That is at most `most_ns`: the head may still be at an envelope whose time is not counted yet.
        """
        with self._lock:
            count = self.chained_in - self._chained_counted
            self._chained_counted += count
            timed_ns = [one.own_ns for one in self._timed_items]
            useful_ns = min(most_ns, round(count * fmean(timed_ns))) if timed_ns else 0
            self.items_in += count
            self._reporter.worked(useful_ns, count, 0)
            return useful_ns

    def report(self, **more: Any) -> dict[str, Any]:
        """For the driver; begins a new interval."""
        with self._lock:
            now_s, cpu_s = time.monotonic(), time.process_time()
            timed, self._timed_items = self._timed_items, []
            channels = self._sum_up(timed)
            lags_ns, self._lags_ns = self._lags_ns, []
            self._reporter.lagged(lags_ns)
            emitted = sum(stream.shipped_items + stream.handed_on for stream in self._sends)
            self._reporter.worked(0, 0, emitted - self._emitted)
            replica = self._reporter.report(now_s - self._since_s, cpu_s=cpu_s - self._cpu_s)
            self._since_s, self._cpu_s, self._emitted = now_s, cpu_s, emitted
            return {"worker": self._totals(), "interval": replica, "channels": channels, **more}

    def _totals(self) -> dict[str, Any]:
        return {
            "task": self._task,
            "replica": self._replica,
            "pid": os.getpid(),
            "serial": self._serial,
            "born_ns": self._outbox.born_ns,
            "items_in": self.items_in + self.chained_in - self._chained_counted,
            "items_out": sum(stream.shipped_items + stream.handed_on for stream in self._sends),
            "envelopes_out": sum(stream.shipped_envelopes for stream in self._sends),
            "sent": {stream.spec.name: stream.shipped_items + stream.handed_on for stream in self._sends},
            "skipped": self._failures.skipped,
            "dead_lettered": self._failures.dead_lettered,
            "latency_ms": self._latency_ms.to_json(),
        }


def process_report(runners: Sequence[Measurements], **more: Any) -> bytes:
    """The report of a worker: of its task, and of those that are chained to it, as JSON.

    The CPU time is that of the process, so only its first task reports it.
    """
    head, *chained = runners
    for task in chained:
        head.share_useful(task)
    joined = [task.report() for task in chained]
    for report in joined:
        report["interval"] = msgspec.structs.replace(report["interval"], cpu_s=None)
    return msgspec.json.encode({**head.report(**more), "chained": joined})
