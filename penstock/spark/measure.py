"""What a worker counts and times, and the report it makes of it once a second.

Timing is done for tagged items only, and for whole envelopes: an item that is not sampled costs nothing. The
task's thread measures and the clock's thread takes the report, so both hold the lock.
"""

import os
import threading
import time
from collections.abc import Callable
from typing import Any

import msgspec

from penstock.flow.graph import LatencyKind
from penstock.spark.envelope import Envelope, Tag
from penstock.spark.failures import Failures
from penstock.spark.outbox import Outbox
from penstock.stats.channel import ChannelTimes
from penstock.stats.channel import Tag as ChannelTag
from penstock.stats.replica_reporter import ReplicaReporter
from penstock.stats.report import ChannelReport
from penstock.stats.sketch import Sketch


class Measurements:
    """Totals since the worker process began, and what the last interval showed."""

    def __init__(
        self,
        task: str,
        replica: int,
        latency: LatencyKind,
        outbox: Outbox,
        failures: Failures,
        streams: list[str],
    ) -> None:
        self.items_in = 0
        self._latency_ms = Sketch()
        self._task = task
        self._replica = replica
        self._outbox = outbox
        self._failures = failures
        self._streams = streams
        self._lock = threading.Lock()
        # Items are sampled at their source: whatever carries a tag is timed, so the reporter takes all.
        self._reporter = ReplicaReporter(
            task, replica, latency_kind=latency, sampling=1.0, uniform=lambda: 0.0
        )
        self._channels: dict[tuple[int, int], ChannelTimes] = {}
        self._since_s = time.monotonic()
        self._cpu_s = time.process_time()
        self._emitted = 0

    def envelope_done(self, envelope: Envelope, arrived_ns: int, useful_ns: int) -> None:
        """An envelope was worked off in `useful_ns`, waiting for room in the output not counted."""
        count = len(envelope.items)
        with self._lock:
            self.items_in += count
            self._reporter.arrived(arrived_ns, count)
            self._reporter.worked(useful_ns, count, 0)

    def source_read(self, count: int, useful_ns: int) -> None:
        """A source has read and sent items."""
        with self._lock:
            self.items_in += count
            self._reporter.worked(useful_ns, count, 0)

    def time_item(self, envelope: Envelope, tag: Tag, arrived_ns: int, step: Callable[[], None]) -> None:
        """Run the step of a tagged item, with all its times."""
        entered_ns = time.monotonic_ns()
        with self._lock:
            self._channel(envelope).entered(ChannelTag(tag.emit_ns, envelope.ship_ns), arrived_ns, entered_ns)
            self._reporter.waited(arrived_ns, entered_ns)
            self._reporter.read(entered_ns)
        step()
        done_ns = time.monotonic_ns()
        with self._lock:
            self._reporter.ready(done_ns)
            if tag.origin_ns and not self._outbox.streams:
                self._latency_ms.add((done_ns - tag.origin_ns) * 1e-6)

    def wrote(self) -> None:
        """The task sent something: the end of read-write latencies."""
        with self._lock:
            self._reporter.wrote(time.monotonic_ns())

    def report(self, **more: Any) -> bytes:
        """JSON for the driver; begins a new interval."""
        with self._lock:
            now_s, cpu_s = time.monotonic(), time.process_time()
            emitted = self._outbox.shipped_items
            self._reporter.worked(0, 0, emitted - self._emitted)
            replica = self._reporter.report(now_s - self._since_s, cpu_s=cpu_s - self._cpu_s)
            channels = [
                ChannelReport(
                    stream=self._streams[stream], sender=sender, receiver=self._replica, times=times.take()
                )
                for (stream, sender), times in self._channels.items()
            ]
            self._since_s, self._cpu_s, self._emitted = now_s, cpu_s, emitted
            return msgspec.json.encode(
                {"worker": self._totals(), "interval": replica, "channels": channels, **more}
            )

    def _totals(self) -> dict[str, Any]:
        return {
            "task": self._task,
            "replica": self._replica,
            "pid": os.getpid(),
            "items_in": self.items_in,
            "items_out": self._outbox.shipped_items,
            "envelopes_out": self._outbox.shipped_envelopes,
            "sent": {stream.spec.name: stream.shipped_items for stream in self._outbox.streams},
            "skipped": self._failures.skipped,
            "dead_lettered": self._failures.dead_lettered,
            "latency_ms": self._latency_ms.to_json(),
        }

    def _channel(self, envelope: Envelope) -> ChannelTimes:
        key = (envelope.stream, envelope.sender)
        if key not in self._channels:
            self._channels[key] = ChannelTimes()
        return self._channels[key]
