"""What the driver knows of a running flow from the reports of its workers."""

import threading
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import msgspec

from penstock.stats.report import ChannelReport, ReplicaReport
from penstock.stats.sketch import Sketch
from penstock.stats.summary import Summary, merge_all, summarise_executors


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


class Said(msgspec.Struct, frozen=True):
    """A report, and the executor whose worker or bridge it comes from."""

    executor: str
    said: Report


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
    """The interval reports since the last look, those of one replica or channel put together.

    What follows for an executor, its partial summary, can be told only when this is done: a value of a task
    is the mean over replicas, and each of them counts once however often it reported. So executors hand on
    the reports of their workers, and the driver, which knows when an interval ends, summarises for them.
    """

    def __init__(self) -> None:
        self._replicas: dict[tuple[str, int], ReplicaReport] = {}
        self._channels: dict[tuple[str, int, int], ChannelReport] = {}
        self._lock = threading.Lock()  # one thread collects reports, others look at them

    def add(self, executor: str, replica: ReplicaReport, channels: list[ChannelReport]) -> None:
        """One report of one worker."""
        with self._lock:
            fresh = msgspec.structs.replace(replica, worker=executor)
            before = self._replicas.get((replica.task, replica.replica))
            self._replicas[replica.task, replica.replica] = fresh if before is None else before.merged(fresh)
            for channel in channels:
                ends = (channel.stream, channel.sender, channel.receiver)
                passed = msgspec.structs.replace(channel, worker=executor)
                known = self._channels.get(ends)
                self._channels[ends] = passed if known is None else known.merged(passed)

    def take_summary(self) -> Summary:
        """The global summary of what came since the last call, merged from those of the executors."""
        with self._lock:
            replicas, self._replicas = self._replicas, {}
            channels, self._channels = self._channels, {}
        return merge_all(summarise_executors(replicas.values(), channels.values()).values())


class Ledger:
    """Collects reports. Totals of processes that are gone stay in."""

    def __init__(self) -> None:
        self.failure: Failure | None = None
        # Not by process id alone: executors on other hosts have the same numbers.
        self._latest: dict[tuple[str, int, int, int], WorkerReport] = {}
        self._restarts: list[Restart] = []
        self._gone: set[int] = set()
        self._windows: list[Window] = []

    def add(self, reports: bytes) -> None:
        """Take in a JSON array of reports."""
        for report in msgspec.json.decode(reports, type=list[Said]):
            self._add(report.executor, report.said)

    def _add(self, executor: str, report: Report) -> None:
        if report.worker is not None:
            worker = report.worker
            self._latest[worker.task, worker.replica, worker.pid, worker.serial] = worker
        if report.interval is not None:
            for window in self._windows:
                window.add(executor, report.interval, report.channels)
        for chained in report.chained:
            self._add(executor, chained)
        if report.restarted is not None:
            self._restarts.append(report.restarted)
        if report.gone is not None:
            self._gone.add(report.gone)
        if report.failed is not None and self.failure is None:
            self.failure = report.failed

    def window(self) -> Window:
        """Of what is measured from now on; everybody who wants to look at intervals of their own has one."""
        self._windows.append(Window())
        return self._windows[-1]

    def backlog(self, inputs: Mapping[str, str]) -> dict[str, int]:
        """Items sent to each task and not processed by it; `inputs` says who receives each stream."""
        waiting: dict[str, int] = {}
        for worker in list(self._latest.values()):
            waiting[worker.task] = waiting.get(worker.task, 0) - worker.items_in
            for stream, count in worker.sent.items():
                waiting[inputs[stream]] = waiting.get(inputs[stream], 0) + count
        return {task: max(0, count) for task, count in waiting.items()}

    def metrics(self, active: dict[str, int], pools: dict[str, int]) -> Metrics:
        """Sum everything up."""
        tasks = {name: TaskMetrics(active[name], pools[name]) for name in active}
        for worker in list(self._latest.values()):
            task = tasks[worker.task]
            task.items_in += worker.items_in
            task.items_out += worker.items_out
            task.envelopes_out += worker.envelopes_out
            task.skipped += worker.skipped
            task.dead_lettered += worker.dead_lettered
        for name, _, pid in dict.fromkeys(key[:3] for key in list(self._latest)):
            if pid not in self._gone:
                tasks[name].processes.append(pid)
        for restart in self._restarts:
            tasks[restart.task].restarts += 1
        return Metrics(tasks, self.latency())

    def latency(self) -> dict[str, Sketch]:
        """From due time to the end of each sink, of all samples since the start."""
        latency: dict[str, Sketch] = {}
        for worker in list(self._latest.values()):
            sketch = Sketch.from_json(worker.latency_ms)
            if sketch.count:
                latency[worker.task] = latency.get(worker.task, Sketch()).merge(sketch)
        return latency
