"""What the driver knows of a running flow from the reports of its workers."""

import threading
from collections import deque
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import NamedTuple

import msgspec

from penstock.stats.key_load import GroupTime, KeyLoad, merged_times
from penstock.stats.report import ChannelReport, ReplicaReport
from penstock.stats.sketch import Sketch
from penstock.stats.summary import Summary, merge_all, summarise_executors
from penstock.wire.reports import (
    Failure,
    Footprint,
    QueuedChannel,
    Refused,
    Report,
    Restart,
    Said,
    ShuffleHeld,
    Slots,
    WorkerReport,
)


@dataclass(slots=True)
class TaskMetrics:
    """Totals of a task over all its processes, and the processes that report now.

    `paused` is said of a source that is to read nothing for now.
    `lag_items` is how far a source is behind, None where that is not known of all its replicas.
    """

    active: int
    pool: int
    items_in: int = 0
    items_out: int = 0
    envelopes_out: int = 0
    skipped: int = 0
    dead_lettered: int = 0
    restarts: int = 0
    processes: list[int] = field(default_factory=list)
    paused: bool = False
    lag_items: int | None = None


@dataclass(frozen=True, slots=True)
class CommitTotals:
    """Commits by epoch marks: how many, how many epochs were void, and what is known of the last one.

    `last_s` is when it was done, by `time.monotonic`; `took_ms` the time from its order until then;
    `state_bytes` the size of what it has of each task. `rollbacks` is how often the flow went back to one.
    """

    count: int = 0
    voids: int = 0
    epoch: int | None = None
    last_s: float | None = None
    took_ms: float | None = None
    state_bytes: Mapping[str, int] = field(default_factory=dict)
    rollbacks: int = 0

    def committed(
        self, epoch: int, now_s: float, took_ms: float, state_bytes: Mapping[str, int]
    ) -> "CommitTotals":
        """One more."""
        return CommitTotals(self.count + 1, self.voids, epoch, now_s, took_ms, state_bytes, self.rollbacks)

    def voided(self) -> "CommitTotals":
        """One void epoch more."""
        return replace(self, voids=self.voids + 1)


@dataclass(slots=True)
class Metrics:
    """A moment of a flow: every task's totals, and the latency of samples from due time to each sink.

    `restarts` is how often the flow was started again, `down_s` for how long it did not run, `replayed` how
    many items came after the last commit each time, and were read again. Where the shuffle is Penstock's,
    `shuffle` is what waits between tasks by executor, and `refused` how many connections it has closed
    because of what came over them. Where commits are epoch marks, `commits` tells of them. `keyed` is what
    was sent by key into each stream, by the last report of each replica.
    """

    tasks: dict[str, TaskMetrics]
    latency: dict[str, Sketch]
    restarts: int = 0
    down_s: float = 0.0
    replayed: int = 0
    shuffle: dict[str, ShuffleHeld] = field(default_factory=dict)
    refused: dict[str, int] = field(default_factory=dict)
    commits: CommitTotals | None = None
    keyed: dict[str, KeyLoad] = field(default_factory=dict)


class Seen(NamedTuple):
    """What was reported since the last look: the global summary, how long sampled items took through the
    sequence of each constraint, and how many cores the workers of each executor and its Java kept busy;
    what was sent by key into each stream, and how long timed items took in each task, by group of keys."""

    summary: Summary
    passed_ms: dict[str, Sketch]
    cores_used: dict[str, float]
    java_cores_used: dict[str, float]
    keyed: dict[str, KeyLoad]
    group_times: dict[str, dict[int, GroupTime]]


class Window:
    """The interval reports since the last look, those of one replica or channel put together.

    What follows for an executor, its partial summary, can be told only when this is done: a value of a task
    is the mean over replicas, and each of them counts once however often it reported. So executors hand on
    the reports of their workers, and the driver, which knows when an interval ends, summarises for them.
    """

    def __init__(self) -> None:
        self._replicas: dict[tuple[str, int], ReplicaReport] = {}
        self._channels: dict[tuple[str, int, int], ChannelReport] = {}
        self._passed_ms: dict[str, Sketch] = {}
        self._java_s: dict[str, tuple[float, float]] = {}
        self._lock = threading.Lock()  # one thread collects reports, others look at them

    def add_java(self, executor: str, footprint: Footprint) -> None:
        """What the Java of an executor used."""
        with self._lock:
            used_s, over_s = self._java_s.get(executor, (0.0, 0.0))
            self._java_s[executor] = (used_s + footprint.java_s, over_s + footprint.over_s)

    def add(
        self,
        executor: str,
        replica: ReplicaReport,
        channels: list[ChannelReport],
        passed_ms: Mapping[str, Sketch],
    ) -> None:
        """One report of one worker."""
        with self._lock:
            for constraint, sketch in passed_ms.items():
                self._passed_ms[constraint] = self._passed_ms.get(constraint, Sketch()).merge(sketch)
            fresh = msgspec.structs.replace(replica, worker=executor)
            before = self._replicas.get((replica.task, replica.replica))
            self._replicas[replica.task, replica.replica] = fresh if before is None else before.merged(fresh)
            for channel in channels:
                ends = (channel.stream, channel.sender, channel.receiver)
                passed = msgspec.structs.replace(channel, worker=executor)
                known = self._channels.get(ends)
                self._channels[ends] = passed if known is None else known.merged(passed)

    def take(self) -> Seen:
        """What came since the last call; the global summary is merged from those of the executors."""
        with self._lock:
            replicas, self._replicas = self._replicas, {}
            channels, self._channels = self._channels, {}
            passed_ms, self._passed_ms = self._passed_ms, {}
            java_s, self._java_s = self._java_s, {}
        summary = merge_all(summarise_executors(replicas.values(), channels.values()).values())
        java = {executor: used_s / over_s for executor, (used_s, over_s) in java_s.items() if over_s > 0}
        used = _cores_used(replicas.values())
        return Seen(summary, passed_ms, used, java, *_by_group(replicas.values()))


def _by_group(
    replicas: Collection[ReplicaReport],
) -> tuple[dict[str, KeyLoad], dict[str, dict[int, GroupTime]]]:
    """By stream what was sent by key, and by task how long items took."""
    times: dict[str, dict[int, GroupTime]] = {}
    for replica in replicas:
        times[replica.task] = merged_times(times.get(replica.task, {}), replica.group_times)
    return _by_stream(replica.keyed for replica in replicas), times


def _by_stream(sent: Iterable[Mapping[str, KeyLoad]]) -> dict[str, KeyLoad]:
    """Of all senders."""
    keyed: dict[str, KeyLoad] = {}
    for told in sent:
        for stream, load in told.items():
            keyed[stream] = keyed.get(stream, KeyLoad()).merged(load)
    return keyed


def _cores_used(replicas: Iterable[ReplicaReport]) -> dict[str, float]:
    """By executor; one of which no worker tells its CPU time is left out."""
    used: dict[str, float] = {}
    for replica in replicas:
        if replica.worker is not None and replica.cpu is not None:
            used[replica.worker] = used.get(replica.worker, 0.0) + replica.cpu
    return used


_Process = tuple[str, int, int]
_Tasks = dict[tuple[str, int], WorkerReport]
_LEAVING = 100


@dataclass(slots=True)
class _Totals:
    """What processes did together, living or gone."""

    items_in: int = 0
    items_out: int = 0
    envelopes_out: int = 0
    skipped: int = 0
    dead_lettered: int = 0
    restarts: int = 0
    sent: dict[str, int] = field(default_factory=dict)
    latency: Sketch = field(default_factory=Sketch)

    def add(self, worker: WorkerReport) -> None:
        """The totals of one process as well."""
        self.items_in += worker.items_in
        self.items_out += worker.items_out
        self.envelopes_out += worker.envelopes_out
        self.skipped += worker.skipped
        self.dead_lettered += worker.dead_lettered
        for stream, count in worker.sent.items():
            self.sent[stream] = self.sent.get(stream, 0) + count
        sketch = Sketch.from_json(worker.latency_ms)
        if sketch.count:
            self.latency = self.latency.merge(sketch)


class Reported:
    """Collects reports. Of processes that are gone only the totals of their tasks are kept."""

    def __init__(self) -> None:
        self.failure: Failure | None = None
        # Not by process id alone: executors on other hosts have the same numbers.
        self._living: dict[_Process, _Tasks] = {}
        self._leaving: dict[_Process, _Tasks] = {}  # gone, but a last report may still be on another way
        self._past: dict[str, _Totals] = {}
        self._waiting: dict[tuple[str, int], tuple[_Process, list[QueuedChannel]]] = {}
        self._held: dict[str, ShuffleHeld] = {}
        self._refused: dict[str, Refused] = {}
        self._footprints: dict[str, Footprint] = {}
        self._slots: dict[str, Slots] = {}
        self._died: deque[Restart] = deque(maxlen=_LEAVING)
        self._lags: dict[str, dict[int, int]] = {}
        self._keyed: dict[tuple[str, int], Mapping[str, KeyLoad]] = {}
        self._windows: list[Window] = []
        self._lock = threading.Lock()  # one thread collects reports, others look at them

    def add(self, reports: bytes | msgspec.Raw) -> None:
        """Take in a JSON array of reports."""
        for report in msgspec.json.decode(reports, type=list[Said]):
            self._add(report.executor, report.said)

    def _add(self, executor: str, report: Report) -> None:
        if report.interval is not None:
            passed_ms = {name: Sketch.from_json(sketch) for name, sketch in report.passed_ms.items()}
            for window in self._windows:
                window.add(executor, report.interval, report.channels, passed_ms)
            self._note_last(report.interval)
        if report.footprint is not None:
            for window in self._windows:
                window.add_java(executor, report.footprint)
        with self._lock:
            self._count(executor, report)
        for chained in report.chained:
            self._add(executor, chained)
        if report.failed is not None and self.failure is None:
            self.failure = report.failed

    def _note_last(self, replica: ReplicaReport) -> None:
        with self._lock:
            self._keyed[replica.task, replica.replica] = replica.keyed
            known = self._lags.setdefault(replica.task, {})
            known.pop(replica.replica, None)
            if replica.lag_items is not None:
                known[replica.replica] = replica.lag_items

    def _count(self, executor: str, report: Report) -> None:
        if report.worker is not None:
            worker = report.worker
            who = (executor, worker.pid, worker.born_ns)
            process = self._leaving.get(who)
            if process is None:
                process = self._living.setdefault(who, {})
            known = process.get((worker.task, worker.serial))
            if known is None or known.made <= worker.made:
                process[worker.task, worker.serial] = worker
            if report.queue is not None:
                self._waiting[worker.task, worker.replica] = (who, report.queue)
            if report.shuffle is not None:
                self._held[executor] = report.shuffle
        if report.refused is not None:
            self._refused[executor] = report.refused
        if report.footprint is not None:
            self._footprints[executor] = report.footprint
        if report.restarted is not None:
            self._past.setdefault(report.restarted.task, _Totals()).restarts += 1
            self._died.append(report.restarted)
        if report.gone is not None:
            for who in [who for who in self._living if who[:2] == (executor, report.gone)]:
                self._leaving[who] = self._living.pop(who)
                self._waiting = {at: told for at, told in self._waiting.items() if told[0] != who}
            while len(self._leaving) > _LEAVING:
                for worker in self._leaving.pop(next(iter(self._leaving))).values():
                    self._past.setdefault(worker.task, _Totals()).add(worker)

    def take_died(self) -> list[Restart]:
        """Workers that died since the last call."""
        with self._lock:
            died = [*self._died]
            self._died.clear()
        return died

    def all_gone(self) -> None:
        """Every process is gone, also those whose executor can tell nobody, and another start is tried."""
        if self.failure is not None and self.failure.may_pass:
            self.failure = None
        with self._lock:
            for process in (*self._living.values(), *self._leaving.values()):
                for worker in process.values():
                    self._past.setdefault(worker.task, _Totals()).add(worker)
            self._living.clear()
            self._leaving.clear()
            self._waiting.clear()
            self._held.clear()
            self._lags.clear()
            self._keyed.clear()
            self._footprints.clear()

    def window(self) -> Window:
        """Of what is measured from now on; everybody who wants to look at intervals of their own has one."""
        self._windows.append(Window())
        return self._windows[-1]

    def _totals(self) -> dict[str, _Totals]:
        """Of every task that ever reported."""
        with self._lock:
            totals = {
                task: replace(past, sent=dict(past.sent), latency=past.latency)
                for task, past in self._past.items()
            }
            known = [*self._living.values(), *self._leaving.values()]
            single = [worker for process in known for worker in process.values()]
        for worker in single:
            totals.setdefault(worker.task, _Totals()).add(worker)
        return totals

    def waiting(self) -> dict[tuple[str, int], list[QueuedChannel]]:
        """What waits before each replica, by task and number, as far as that is known."""
        with self._lock:
            return {at: queue for at, (_, queue) in self._waiting.items()}

    def backlog(self, inputs: Mapping[str, str]) -> dict[str, int]:
        """Items sent to each task and not processed by it; `inputs` says who receives each stream."""
        waiting: dict[str, int] = {}
        for task, totals in self._totals().items():
            waiting[task] = waiting.get(task, 0) - totals.items_in
            for stream, count in totals.sent.items():
                waiting[inputs[stream]] = waiting.get(inputs[stream], 0) + count
        return {task: max(0, count) for task, count in waiting.items()}

    def metrics(self, active: Mapping[str, int], pools: Mapping[str, int]) -> Metrics:
        """Sum everything up."""
        tasks = {name: TaskMetrics(active[name], pools[name]) for name in active}
        totals = self._totals()
        for name, total in totals.items():
            task = tasks[name]
            task.items_in, task.items_out = total.items_in, total.items_out
            task.envelopes_out, task.restarts = total.envelopes_out, total.restarts
            task.skipped, task.dead_lettered = total.skipped, total.dead_lettered
        with self._lock:
            for name, task in tasks.items():
                lags = [lag for replica, lag in self._lags.get(name, {}).items() if replica < task.active]
                task.lag_items = sum(lags) if len(lags) == task.active else None
            for (_, pid, _), process in self._living.items():
                for name in {task for task, _ in process}:
                    tasks[name].processes.append(pid)
            sent = [told for (name, replica), told in self._keyed.items() if replica < tasks[name].active]
            held = dict(self._held)
            refused = {executor: told.count for executor, told in self._refused.items()}
        latency = {name: total.latency for name, total in totals.items() if total.latency.count}
        return Metrics(tasks, latency, shuffle=held, refused=refused, keyed=_by_stream(sent))

    def note_slots(self, slots: bytes) -> None:
        """Take in a JSON object of what Spark's executors of now may run, and run."""
        known = msgspec.json.decode(slots, type=dict[str, Slots])
        with self._lock:
            self._slots = known

    def executors(self) -> dict[str, tuple[Footprint | None, Slots | None]]:
        """What every executor takes and runs, as far as that is known."""
        with self._lock:
            footprints, slots = dict(self._footprints), self._slots
        return {name: (footprints.get(name), slots.get(name)) for name in sorted({*footprints, *slots})}

    def refused(self) -> dict[str, Refused]:
        """What each executor has told of connections that it closed."""
        with self._lock:
            return dict(self._refused)
