"""The ablation of pools: an engine that stops the flow at every change of replicas, and starts it again.

The checkpoint is the same, so nothing is lost or comes twice; sources, layers and workers begin anew.
"""

import time
from collections.abc import Callable
from typing import Protocol

import msgspec

from penstock.control.engine import Boundary, Effect
from penstock.policy.decision import Decision
from penstock.stats.snapshot import Snapshot, TaskStats

COUNTED = ("processed_total", "emitted_total", "useful_s")


class Restartable(Protocol):
    """What of a job is needed here."""

    def await_end(self, timeout_s: float | None) -> bool: ...

    def snapshot(self, interval_s: float) -> Snapshot: ...

    def stop(self) -> object: ...

    def set_active(self, task: str, replicas: int) -> None: ...


class RestartingEngine:
    """Drives jobs one after the other; `start` begins the flow on its checkpoint."""

    def __init__(
        self,
        start: Callable[[], Restartable],
        interval_s: float,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._start = start
        self._interval_s = interval_s
        self._clock = clock
        self.restarts = 0
        self._job = start()
        self._since_s = clock()
        self._now: dict[str, int] = {}
        self._drained: Snapshot | None = None
        self._boundary: Boundary | None = None

    def observe(self) -> Snapshot | None:
        """What the interval showed, downtime included; None when the flow is over."""
        if self._job.await_end(self._since_s + self._interval_s - self._clock()):
            return None
        now_s = self._clock()
        snapshot = self._job.snapshot(now_s - self._since_s)
        self._since_s = now_s
        self._now = {name: task.parallelism for name, task in snapshot.elastic_tasks().items()}
        if self._drained is not None:
            snapshot, self._drained = with_counts_of(self._drained, snapshot), None
        return snapshot

    def apply(self, decision: Decision) -> Effect | None:
        """Stop and start again if replicas change; everything else is left as it is."""
        wanted = {**self._now, **decision.parallelism}
        if wanted == self._now:
            return None
        began_s = self._clock()
        self._job.stop()
        self._drained = self._job.snapshot(max(self._clock() - self._since_s, 1e-3))
        self._job = self._start()
        for task, count in wanted.items():
            self._job.set_active(task, count)
        self.restarts += 1
        ended_s = self._clock()
        gap_ms = (ended_s - began_s) * 1000
        self._boundary = Boundary(ended_at_s=ended_s, gap_ms=gap_ms)
        return Effect(after_ms=gap_ms, gap_ms=gap_ms)

    def boundary(self) -> Boundary | None:
        """The last restart."""
        return self._boundary


def with_counts_of(drained: Snapshot, snapshot: Snapshot) -> Snapshot:
    """What a flow still did while it was stopped belongs to the interval in which it was stopped."""
    tasks = {name: _added(task, drained.tasks.get(name)) for name, task in snapshot.tasks.items()}
    sent = {stream.name: stream.emitted_total for stream in drained.streams}
    streams = [
        msgspec.structs.replace(stream, emitted_total=(stream.emitted_total or 0.0) + more)
        if (more := sent.get(stream.name)) is not None
        else stream
        for stream in snapshot.streams
    ]
    return msgspec.structs.replace(snapshot, tasks=tasks, streams=streams)


def _added(task: TaskStats, more: TaskStats | None) -> TaskStats:
    if more is None:
        return task
    sums = {
        field: (getattr(task, field) or 0.0) + getattr(more, field)
        for field in COUNTED
        if getattr(more, field) is not None
    }
    return msgspec.structs.replace(task, **sums)
