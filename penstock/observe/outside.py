"""What the driver knows of an interval and no worker can report: pools, backlogs, percentiles, cores."""

import os
import time
from collections.abc import Callable, Mapping

import msgspec

from penstock.flow.layers import Layout
from penstock.stats.sketch import Sketch
from penstock.stats.snapshot import ConstraintSpec, QueueStats, Snapshot

LEAST_SAMPLES = {0.95: 20, 0.99: 100}
"""So many items must be there for one to lie beyond the percentile."""


class Outside:
    """Completes snapshots; each call ends an interval that the call before began.

    `cpu_s` gives the CPU seconds of driver, Spark and workers so far, None where they are not all on this
    machine.
    """

    def __init__(
        self, cpu_s: Callable[[], float] | None, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._cpu_s = cpu_s
        self._clock = clock
        self._before = self._cpu_now()

    def complete(
        self, snapshot: Snapshot, layout: Layout, backlog: Mapping[str, int], passed_ms: Mapping[str, Sketch]
    ) -> Snapshot:
        """The snapshot with all that; `passed_ms` is how long items took through each constraint."""
        tasks = {
            name: msgspec.structs.replace(
                task, backlog_total=backlog.get(name), pool=layout.unit_of(name).pool
            )
            for name, task in snapshot.tasks.items()
        }
        streams = [
            msgspec.structs.replace(stream, queue=_queue(snapshot, stream.receiver, backlog))
            for stream in snapshot.streams
        ]
        constraints = [
            _with_percentiles(constraint, passed_ms.get(constraint.name))
            for constraint in snapshot.constraints
        ]
        used = self._cores_used()
        return msgspec.structs.replace(
            snapshot,
            tasks=tasks,
            streams=streams,
            constraints=constraints,
            cores_used=used,
            cores_leased=None if used is None else float(os.cpu_count() or 1),
        )

    def _cpu_now(self) -> tuple[float, float] | None:
        return None if self._cpu_s is None else (self._clock(), self._cpu_s())

    def _cores_used(self) -> float | None:
        before, self._before = self._before, self._cpu_now()
        if before is None or self._before is None:
            return None
        elapsed_s, busy_s = (now - then for now, then in zip(self._before, before, strict=True))
        # The time of a process that ended unwaited for leaves the sum again.
        return max(0.0, busy_s) / elapsed_s if elapsed_s > 0 else None


def _queue(snapshot: Snapshot, receiver: str, backlog: Mapping[str, int]) -> QueueStats | None:
    """What waits of a stream, on its way or in the queue; of several inputs a backlog tells only the sum."""
    if receiver not in backlog or len(snapshot.streams_into(receiver)) > 1:
        return None
    return QueueStats(items=backlog[receiver])


def _with_percentiles(constraint: ConstraintSpec, passed_ms: Sketch | None) -> ConstraintSpec:
    """Of single items that were followed through a sequence; too few of them tell nothing of a tail."""
    if passed_ms is None:
        return constraint
    p95_ms, p99_ms = (
        passed_ms.quantile(share) if passed_ms.count >= least else None
        for share, least in LEAST_SAMPLES.items()
    )
    late = None if constraint.statistic == "mean" else passed_ms.above(constraint.latency_ms)
    return msgspec.structs.replace(
        constraint, p95_ms=p95_ms, p99_ms=p99_ms, samples=passed_ms.count, late=late
    )
