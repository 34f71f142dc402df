"""What the driver knows of a running flow from the reports of its workers."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import msgspec

from penstock.stats.report import ChannelReport, ReplicaReport
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
    sent: dict[str, int] = {}
    serial: int = 0


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
    """One report: of a worker, with what its last interval showed, or of one of the other three events."""

    worker: WorkerReport | None = None
    restarted: Restart | None = None
    failed: Failure | None = None
    gone: int | None = None
    interval: ReplicaReport | None = None
    channels: list[ChannelReport] = []
    chained: "list[Report]" = []


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
    """A moment of a flow: every task's totals, and the latency of samples from due time to each sink."""

    tasks: dict[str, TaskMetrics]
    latency: dict[str, Sketch]


class Window:
    """The interval reports since the last look, those of one replica or channel put together."""

    def __init__(self) -> None:
        self.replicas: dict[tuple[str, int], ReplicaReport] = {}
        self.channels: dict[tuple[str, int, int], ChannelReport] = {}

    def add(self, replica: ReplicaReport, channels: list[ChannelReport]) -> None:
        """One second of one worker."""
        key = (replica.task, replica.replica)
        self.replicas[key] = self.replicas[key].merged(replica) if key in self.replicas else replica
        for channel in channels:
            ends = (channel.stream, channel.sender, channel.receiver)
            known = self.channels.get(ends)
            self.channels[ends] = channel if known is None else known.merged(channel)


class Ledger:
    """Collects reports. Totals of processes that are gone stay in."""

    def __init__(self) -> None:
        self.failure: Failure | None = None
        # Not by process id alone: executors on other hosts have the same numbers.
        self._latest: dict[tuple[str, int, int, int], WorkerReport] = {}
        self._restarts: list[Restart] = []
        self._gone: set[int] = set()
        self._window = Window()

    def add(self, reports: bytes) -> None:
        """Take in a JSON array of reports."""
        for report in msgspec.json.decode(reports, type=list[Report]):
            self._add(report)

    def _add(self, report: Report) -> None:
        if report.worker is not None:
            worker = report.worker
            self._latest[worker.task, worker.replica, worker.pid, worker.serial] = worker
        if report.interval is not None:
            self._window.add(report.interval, report.channels)
        for chained in report.chained:
            self._add(chained)
        if report.restarted is not None:
            self._restarts.append(report.restarted)
        if report.gone is not None:
            self._gone.add(report.gone)
        if report.failed is not None and self.failure is None:
            self.failure = report.failed

    def take_window(self) -> Window:
        """What was measured since the last call."""
        window, self._window = self._window, Window()
        return window

    def backlog(self, inputs: Mapping[str, str]) -> dict[str, int]:
        """Items sent to each task and not processed by it; `inputs` says who receives each stream."""
        waiting: dict[str, int] = {}
        for worker in self._latest.values():
            waiting[worker.task] = waiting.get(worker.task, 0) - worker.items_in
            for stream, count in worker.sent.items():
                waiting[inputs[stream]] = waiting.get(inputs[stream], 0) + count
        return {task: max(0, count) for task, count in waiting.items()}

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
            sketch = Sketch.from_json(worker.latency_ms)
            if sketch.count:
                latency[worker.task] = (
                    latency[worker.task].merge(sketch) if worker.task in latency else sketch
                )
        for name, _, pid in dict.fromkeys(key[:3] for key in self._latest):
            if pid not in self._gone:
                tasks[name].processes.append(pid)
        for restart in self._restarts:
            tasks[restart.task].restarts += 1
        return Metrics(tasks, latency)
