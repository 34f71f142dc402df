"""What the driver knows of an interval and no worker can report: pools, backlogs, percentiles, cores."""

import os
import time
from collections.abc import Callable, Mapping

import msgspec

from penstock.flow.layers import Layout
from penstock.stats.sketch import Sketch
from penstock.stats.snapshot import ConstraintSpec, Snapshot
from penstock.stats.snapshot_structs import ARROW


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
        self._latency: Mapping[str, Sketch] = {}

    def complete(
        self, snapshot: Snapshot, layout: Layout, backlog: Mapping[str, int], latency: Mapping[str, Sketch]
    ) -> Snapshot:
        """The snapshot with all that; `latency` is that of every sink since the start."""
        earlier, self._latency = self._latency, latency
        recent = {
            sink: total.minus(earlier[sink]) if sink in earlier else total for sink, total in latency.items()
        }
        tasks = {
            name: msgspec.structs.replace(
                task, backlog_total=backlog.get(name), pool=layout.unit_of(name).pool
            )
            for name, task in snapshot.tasks.items()
        }
        constraints = [
            msgspec.structs.replace(constraint, p95_ms=_p95_ms(snapshot, constraint, recent))
            for constraint in snapshot.constraints
        ]
        used = self._cores_used()
        return msgspec.structs.replace(
            snapshot,
            tasks=tasks,
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


def _p95_ms(snapshot: Snapshot, constraint: ConstraintSpec, recent: Mapping[str, Sketch]) -> float | None:
    """From due time to the end of the sink, for constraints that lead from a source to a sink.

    Items are followed one by one only from end to end, as in the thesis (section 5.2.1), and a sink with
    several inputs cannot tell by which way an item came.
    """
    streams = constraint.streams()
    if not streams or ARROW not in constraint.sequence[0]:
        return None
    first, last = snapshot.stream(streams[0]), snapshot.stream(streams[-1])
    sink = last.receiver
    whole = snapshot.tasks[first.sender].kind == "source" and snapshot.tasks[sink].kind == "sink"
    if not whole or len(snapshot.streams_into(sink)) > 1 or sink not in recent:
        return None
    return recent[sink].quantile(0.95)
