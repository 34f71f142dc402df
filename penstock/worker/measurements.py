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

from penstock.flow.graph import Graph
from penstock.flow.sequences import alone, places
from penstock.stats.channel import Passage, channel_moments
from penstock.stats.fair_share import fair_share
from penstock.stats.key_load import KeyLoad
from penstock.stats.replica_reporter import ReplicaReporter
from penstock.stats.report import ChannelReport
from penstock.stats.sketch import Sketch
from penstock.wire.envelope import Envelope, Tag
from penstock.worker.failures import Failures
from penstock.worker.flow_time import UNKNOWN_NS
from penstock.worker.group_times import GroupTimes
from penstock.worker.outbox import Came, Outbox, OutStream
from penstock.worker.slot_time import SlotTime

_serials = itertools.count()
_reports = itertools.count()


class Timed(NamedTuple):
    """The times of a tagged item, in ns: emitted, shipped and due by the flow's clock, others by this one.

    `own_ns` is how long it took without the tasks chained behind it, `ahead_ns` how far this machine's clock
    was ahead of the flow's. `entry_ns` is when it entered the sequence of its stream, by the flow's clock.
    `shared_by` is how many items took that time together: its service time is its part of it.
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
    entry_ns: int
    shared_by: int = 1

    @property
    def service_ns(self) -> int:
        return self.own_ns // self.shared_by


class SampledCall(NamedTuple):
    """A tagged item for which a call of an async body is open."""

    envelope: Envelope
    tag: Tag
    arrived_ns: int
    came: Came


class Measurements:
    """One task: totals since it began in this process, and what the last interval showed."""

    def __init__(
        self,
        graph: Graph,
        task: str,
        replica: int,
        sends: list[OutStream],
        failures: Failures,
        outbox: Outbox,
    ) -> None:
        latency_kind = graph.task(task).latency_kind
        concurrency = graph.task(task).concurrency or 1
        self.items_in = 0
        self.chained_in = 0
        self._latency_ms = Sketch()
        self._task = task
        self._replica = replica
        self._sends = sends
        self._failures = failures
        self._names = [stream.name for stream in graph.streams]
        self._places = places(graph)
        self._alone = alone(graph, task)
        self._passed_ms: dict[str, Sketch] = {}
        self._serial = next(_serials)
        self._outbox = outbox
        self._lock = threading.Lock()
        self._gathers = latency_kind == "read_write"
        self._reporter = ReplicaReporter(task, replica, latency_kind=latency_kind, concurrency=concurrency)
        self._slots: SlotTime | None = None
        self._slots_so_far = (0, 0, 0)
        self._since_s = time.monotonic()
        self._cpu_s = time.process_time()
        self._sent: dict[str, int] = {}
        self._chained_counted = 0
        self._chained_timer_ns = 0
        self._coded_ns = 0
        self._timed_items: list[Timed] = []
        self._group_times = GroupTimes(graph.streams)
        self._lags_ns: list[int] = []
        self.lag_items: int | None = None
        """Items that a source has not sent, where that is known: at the last look, less those sent since."""

    def envelope_done(self, envelope: Envelope, arrived_ns: int, useful_ns: int) -> None:
        """An envelope was worked off in `useful_ns`, waiting for room in the output not counted."""
        count = len(envelope.items)
        with self._lock:
            self._reporter.arrived(arrived_ns, count)
            if self._slots is None:
                self.items_in += count
                self._reporter.worked(useful_ns, count, 0)

    def by_calls(self, slots: SlotTime) -> None:
        """Items are answered by calls that run at the same time: these count, and when they are over."""
        self._slots = slots

    def count_calls(self) -> None:
        """Add what calls have done since the last report: by their share of the capacity (slot_time.py)."""
        if self._slots is None:
            return
        with self._lock:
            now_ns = time.monotonic_ns()
            before, self._slots_so_far = (
                self._slots_so_far,
                (
                    self._slots.done,
                    self._slots.useful_ns(now_ns),
                    self._outbox.task_time.at(now_ns),
                ),
            )
            done, slots_ns, thread_ns = (
                now - then for now, then in zip(self._slots_so_far, before, strict=True)
            )
            self.items_in += done
            self._reporter.worked(max(slots_ns, thread_ns + self._take_coded_ns()), done, 0)

    def timer_ran(self, useful_ns: int) -> None:
        """A timer took so long: this task's, or that of a task chained to it, which gets its share later."""
        if self._slots is None:  # its time is that of the thread, which is counted as a whole
            with self._lock:
                self._reporter.worked(useful_ns, 0, 0)

    def chained_timer_ran(self, own_ns: int) -> None:
        """So much of the time of a timer was this task's own."""
        with self._lock:
            self._chained_timer_ns += own_ns

    def source_read(self, count: int, useful_ns: int, due_ns: Sequence[int] | None = None) -> None:
        """A source has read and sent items, which were due at `due_ns`."""
        with self._lock:
            if due_ns:
                self._reporter.due_between(due_ns[0], due_ns[-1])
            self.items_in += count
            if self.lag_items is not None:
                self.lag_items = max(0, self.lag_items - count)
            self._reporter.worked(useful_ns, count, 0)

    def time_item(
        self, envelope: Envelope, tag: Tag, arrived_ns: int, step: Callable[[Any], None], item: Any
    ) -> None:
        """Run the step of a tagged item, and keep all its times."""
        entry_ns = self.entry_ns(envelope.stream, tag)
        entered_ns, done_ns, own_ns = self._timed(step, item, envelope.stream, entry_ns)
        self._group_times.took(envelope.stream, item, own_ns)
        self._keep(envelope, tag, arrived_ns, entered_ns, done_ns, own_ns, entry_ns)

    def call_begun(self, envelope: Envelope, tag: Tag, arrived_ns: int) -> SampledCall:
        """A call for a tagged item begins."""
        entered_ns = time.monotonic_ns()
        self._read(entered_ns)
        came = Came(envelope.stream, self.entry_ns(envelope.stream, tag), entered_ns)
        return SampledCall(envelope, tag, arrived_ns, came)

    def call_done(self, call: SampledCall) -> None:
        """It is over, and what came of it is sent: keep all its times."""
        done_ns, came = time.monotonic_ns(), call.came
        own_ns = done_ns - came.taken_ns - self._outbox.behind_ns
        self._keep(call.envelope, call.tag, call.arrived_ns, came.taken_ns, done_ns, own_ns, came.entry_ns)

    def _keep(
        self,
        envelope: Envelope,
        tag: Tag,
        arrived_ns: int,
        entered_ns: int,
        done_ns: int,
        own_ns: int,
        entry_ns: int,
    ) -> None:
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
                entry_ns,
            )
        )

    def time_chained(self, stream: OutStream, origin_ns: int, step: Callable[[Any], None], item: Any) -> None:
        """The same for an item that a chained task was handed: it came without any delay."""
        outbox = self._outbox
        handed = Tag(0, outbox.time.now_ns(), origin_ns, outbox.entry_ns(stream))
        entry_ns = self.entry_ns(stream.number, handed)
        entered_ns, done_ns, own_ns = self._timed(step, item, stream.number, entry_ns)
        ahead_ns = outbox.time.ahead_ns
        at_ns = entered_ns if ahead_ns is None else entered_ns - ahead_ns
        channel = (stream.number, self._replica)
        times = (at_ns, at_ns, entered_ns, entered_ns, done_ns, own_ns, origin_ns, ahead_ns, entry_ns)
        self._timed_items.append(Timed(channel, *times))
        self.chained_in += 1

    def batch_taken(self, entered_ns: int, tagged: int) -> None:
        """The task takes a batch with so many tagged items."""
        if self._gathers and tagged:
            with self._lock:
                for _ in range(tagged):
                    self._reporter.read(entered_ns)

    def batch_done(self, timed: Sequence[Timed]) -> None:
        """Keep the times of the tagged items of a batch."""
        self._timed_items += timed

    def entry_ns(self, stream: int, tag: Tag) -> int:
        """When a tagged item that came by a stream entered the sequence that the stream belongs to."""
        place = self._places.get(stream)
        if place is None:
            return UNKNOWN_NS
        return {"due": tag.origin_ns, "emitted": tag.emit_ns}.get(place.entry, tag.entry_ns)

    def _timed(
        self, step: Callable[[Any], None], item: Any, stream: int, entry_ns: int
    ) -> tuple[int, int, int]:
        """Run a step: when it began and ended, and how long it took without the tasks chained behind it."""
        outbox = self._outbox
        behind_ns, outbox.behind_ns = outbox.behind_ns, 0
        entered_ns = time.monotonic_ns()
        came, outbox.came = outbox.came, Came(stream, entry_ns, entered_ns)
        self._read(entered_ns)
        step(item)
        done_ns = time.monotonic_ns()
        outbox.came = came
        took_ns = done_ns - entered_ns
        own_ns = took_ns - outbox.behind_ns
        outbox.behind_ns = behind_ns + took_ns
        return entered_ns, done_ns, own_ns

    def _read(self, now_ns: int) -> None:
        """A tagged item is taken: the beginning of read-write latencies."""
        if self._gathers:
            with self._lock:
                self._reporter.read(now_ns)

    def _sum_up(self, timed: list[Timed]) -> list[ChannelReport]:
        """What the interval's tagged items showed; a time by a clock that is not known is left out."""
        by_share = [one for one in timed if one.origin_ns != UNKNOWN_NS]
        of_timers = [one for one in timed if one.origin_ns == UNKNOWN_NS]
        fair = fair_share(by_share, of_timers, self._reporter.processed)
        self._reporter.served(
            [one.service_ns for one in fair],
            [one.entered_ns - one.arrived_ns for one in fair],
            [one.own_ns for one in fair],
        )
        channels: dict[tuple[int, int], list[Passage]] = {}
        is_last = not self._sends
        for one in timed:
            ahead_ns = one.ahead_ns
            for constraint in self._alone:
                self._pass(constraint, one.own_ns)
            if ahead_ns is None:
                continue
            place = self._places.get(one.channel[0])
            if place is not None and place.exit is not None and one.entry_ns != UNKNOWN_NS:
                left_ns = one.entered_ns + (one.own_ns if place.exit == "done" else 0)
                self._pass(place.constraint, left_ns - ahead_ns - one.entry_ns)
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

    def _pass(self, constraint: str, took_ns: int) -> None:
        """A tagged item has left the sequence of a constraint."""
        self._passed_ms.setdefault(constraint, Sketch()).add(took_ns * 1e-6)

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
            timed_ns = [one.service_ns for one in self._timed_items]
            timer_ns, self._chained_timer_ns = self._chained_timer_ns, 0
            useful_ns = min(most_ns, timer_ns + (round(count * fmean(timed_ns)) if timed_ns else 0))
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
            total = self._sent_so_far()
            sent = {name: count - self._sent.get(name, 0) for name, count in total.items()}
            self._reporter.worked(self._take_coded_ns(), 0, sum(sent.values()))
            replica = self._reporter.report(
                now_s - self._since_s,
                cpu_s=cpu_s - self._cpu_s,
                lag_items=self.lag_items,
                sent=sent,
                keyed=self._take_keyed(),
                group_times=self._group_times.take(),
            )
            self._since_s, self._cpu_s, self._sent = now_s, cpu_s, total
            passed, self._passed_ms = self._passed_ms, {}
            return {
                "worker": self._totals(),
                "interval": replica,
                "channels": channels,
                "passed_ms": {name: sketch.to_json() for name, sketch in passed.items()},
                **more,
            }

    def _take_coded_ns(self) -> int:
        """Useful time of the shipper's thread since this was last asked for."""
        before_ns, self._coded_ns = self._coded_ns, sum(stream.coded_ns for stream in self._sends)
        return self._coded_ns - before_ns

    def _sent_so_far(self) -> dict[str, int]:
        """Into each stream, since the task began in this process."""
        return {stream.spec.name: stream.shipped_items + stream.handed_on for stream in self._sends}

    def _take_keyed(self) -> dict[str, KeyLoad]:
        """What was sent by key since the last report."""
        taken = {s.spec.name: s.by_key.take() for s in self._sends if s.spec.wiring == "key"}
        return {name: load for name, load in taken.items() if load.slices}

    def _totals(self) -> dict[str, Any]:
        return {
            "task": self._task,
            "replica": self._replica,
            "pid": os.getpid(),
            "serial": self._serial,
            "born_ns": self._outbox.born_ns,
            "made": next(_reports),
            "items_in": self.items_in + self.chained_in - self._chained_counted,
            "items_out": sum(self._sent_so_far().values()),
            "envelopes_out": sum(stream.shipped_envelopes for stream in self._sends),
            "sent": self._sent_so_far(),
            "skipped": self._failures.skipped,
            "dead_lettered": self._failures.dead_lettered,
            "latency_ms": self._latency_ms.to_json(),
        }


def process_report(runners: Sequence[Measurements], **more: Any) -> bytes:
    """The report of a worker: of its task, and of those that are chained to it, as JSON.

    The CPU time is that of the process, so only its first task reports it.
    """
    head, *chained = runners
    head.count_calls()
    for task in chained:
        head.share_useful(task)
    joined = [task.report() for task in chained]
    for report in joined:
        report["interval"] = msgspec.structs.replace(report["interval"], cpu_s=None)
    return msgspec.json.encode({**head.report(**more), "chained": joined})
