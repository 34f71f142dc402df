"""What the driver knows of a running flow from the reports of its workers."""

from dataclasses import dataclass, field
from typing import Any

import msgspec

from penstock.stats.sketch import Sketch


class WorkerReport(msgspec.Struct, frozen=True):
    """Totals of one worker process since it began."""

    task: str
    replica: int
    pid: int
    items_in: int
    items_out: int
    envelopes_out: int
    skipped: int
    dead_lettered: int
    latency_ms: dict[str, Any]


class Restart(msgspec.Struct, frozen=True):
    """A worker died and was replaced."""

    task: str
    replica: int
    how: str


class Failure(msgspec.Struct, frozen=True):
    """Why the flow stopped."""

    task: str
    replica: int
    problem: str


class Report(msgspec.Struct, frozen=True):
    """One report; exactly one of its fields is there."""

    worker: WorkerReport | None = None
    restarted: Restart | None = None
    failed: Failure | None = None
    gone: int | None = None


@dataclass(slots=True)
class TaskMetrics:
    """Totals of a task over all its processes, and the processes that report now."""

    active: int
    pool: int
    items_in: int = 0
    items_out: int = 0
    envelopes_out: int = 0
    skipped: int = 0
    dead_lettered: int = 0
    restarts: int = 0
    processes: list[int] = field(default_factory=list)


@dataclass(slots=True)
class Metrics:
    """A moment of a flow: every task's totals, and the latency of sampled items from due time to each sink."""

    tasks: dict[str, TaskMetrics]
    latency: dict[str, Sketch]


class Ledger:
    """Collects reports. Totals of processes that are gone stay in."""

    def __init__(self) -> None:
        self.failure: Failure | None = None
        self._latest: dict[int, WorkerReport] = {}
        self._restarts: list[Restart] = []
        self._gone: set[int] = set()

    def add(self, reports: bytes) -> None:
        """Take in a JSON array of reports."""
        for report in msgspec.json.decode(reports, type=list[Report]):
            if report.worker is not None:
                self._latest[report.worker.pid] = report.worker
            if report.restarted is not None:
                self._restarts.append(report.restarted)
            if report.gone is not None:
                self._gone.add(report.gone)
            if report.failed is not None and self.failure is None:
                self.failure = report.failed

    def metrics(self, active: dict[str, int], pools: dict[str, int]) -> Metrics:
        """Sum everything up."""
        tasks = {name: TaskMetrics(active[name], pools[name]) for name in active}
        latency: dict[str, Sketch] = {}
        for worker in self._latest.values():
            task = tasks[worker.task]
            task.items_in += worker.items_in
            task.items_out += worker.items_out
            task.envelopes_out += worker.envelopes_out
            task.skipped += worker.skipped
            task.dead_lettered += worker.dead_lettered
            if worker.pid not in self._gone:
                task.processes.append(worker.pid)
            sketch = Sketch.from_json(worker.latency_ms)
            if sketch.count:
                latency[worker.task] = (
                    latency[worker.task].merge(sketch) if worker.task in latency else sketch
                )
        for restart in self._restarts:
            tasks[restart.task].restarts += 1
        return Metrics(tasks, latency)
