"""What a driver answers: the status of its flow, changes of its settings, and its end."""

import time
from collections.abc import Mapping, Sequence
from typing import Any

from penstock.control.by_hand import entry_by_hand
from penstock.durations import DurationError
from penstock.flow.errors import FlowError, JobFailed
from penstock.flow.graph import Graph
from penstock.flow.layers import Layout
from penstock.observe.reported import CommitTotals
from penstock.operate.ports import Operated
from penstock.operate.protocol import (
    Answer,
    AskStatus,
    Changed,
    CommitsNow,
    ConstraintNow,
    FlowNow,
    LatencyNow,
    Refused,
    Request,
    Set,
    Stopped,
    TaskNow,
)
from penstock.stats.key_load import KeyLoad, merged_loads

HEAVY = 3
"""Groups of keys that are told of."""
_RATE_S = 5.0
_EFFECT_S = 5.0


class Commands:
    """Carries commands out, in whatever thread they come."""

    def __init__(self, job: Operated, by: str = "penstock set") -> None:
        self._job = job
        self._by = by

    def answer(self, request: Request) -> Answer:
        """What was asked for, or why not."""
        try:
            if isinstance(request, AskStatus):
                return self._now()
            if isinstance(request, Set):
                return self._set(request)
            return self._stop(request.timeout_s)
        except (FlowError, DurationError) as problem:
            return Refused(why=str(problem))
        except JobFailed as problem:
            return Refused(why=str(problem), failed=True)

    def _now(self) -> FlowNow:
        job = self._job
        graph, metrics, status = job.layout.graph, job.metrics(), job.status
        per_s = rates(job.recent_progress, _RATE_S)
        state_bytes = {} if metrics.commits is None else metrics.commits.state_bytes
        tasks = [
            TaskNow(
                name=task.name,
                kind=task.kind,
                replicas=metrics.tasks[task.name].active,
                pool=metrics.tasks[task.name].pool,
                lowest=task.parallelism.min,
                highest=task.parallelism.max,
                items_in=metrics.tasks[task.name].items_in,
                per_s=per_s.get(task.name),
                skipped=metrics.tasks[task.name].skipped,
                dead_lettered=metrics.tasks[task.name].dead_lettered,
                restarts=metrics.tasks[task.name].restarts,
                paused=metrics.tasks[task.name].paused,
                lag_items=metrics.tasks[task.name].lag_items,
                state_bytes=state_bytes.get(task.name),
            )
            for task in graph.tasks
        ]
        return FlowNow(
            state=status.state,
            message=status.message,
            slots=job.slots,
            restarts=metrics.restarts,
            tasks=tasks,
            lifetimes_ms=job.lifetimes_ms(),
            constraints=[
                ConstraintNow(name=one.name, sequence=list(one.sequence), bound_ms=one.latency_ms)
                for one in graph.constraints
            ],
            latency={
                sink: LatencyNow(mean_ms=sketch.mean, p99_ms=sketch.quantile(0.99))
                for sink, sketch in metrics.latency.items()
            },
            control=None if job.control is None else job.control.status(),
            commits=commits_now(metrics.commits),
            heaviest_groups=heaviest_groups(graph, metrics.keyed),
        )

    def _set(self, wanted: Set) -> Changed:
        job, control = self._job, self._job.control
        before, layout, lifetimes_ms = job.metrics(), job.layout, job.lifetimes_ms()
        _check(layout, wanted)
        mode = None if control is None else control.mode
        if wanted.policy is not None:
            if control is None:
                raise FlowError(f'flow "{layout.graph.name}" runs without a policy; start it with one')
            control.set_mode(wanted.policy)  # first, or it may undo the rest at once
        try:
            gap_ms = self._turned(layout, wanted)
        except Exception:
            if control is not None and mode is not None:
                control.set_mode(mode)
            raise
        bounds_ms = {one.name: one.latency_ms for one in layout.graph.constraints}
        entry = entry_by_hand(
            self._by,
            time.time(),
            "none" if control is None else control.status().policy,
            replicas={task: (before.tasks[task].active, n) for task, n in wanted.replicas.items()},
            lifetimes_ms={name: (lifetimes_ms[name], new) for name, new in wanted.lifetimes_ms.items()},
            bounds_ms={name: (bounds_ms[name], new) for name, new in wanted.bounds_ms.items()},
            paused={source: source in wanted.pause for source in (*wanted.pause, *wanted.resume)},
            mode=None if mode is None or wanted.policy is None else (mode, wanted.policy),
        )
        job.log_by_hand(entry)
        changes = [reason.why for reason in entry.decision.reasons]
        return Changed(
            changes=changes,
            gap_ms=gap_ms or 0.0,
            in_effect=gap_ms is None or job.await_effect(_EFFECT_S),
            note=self._note(wanted),
        )

    def _turned(self, layout: Layout, wanted: Set) -> float | None:
        gap_ms = None
        if wanted.replicas or wanted.lifetimes_ms:
            larger = {task: n for task, n in wanted.replicas.items() if n > layout.unit_of(task).pool}
            gap_ms = self._job.adapt(wanted.replicas, wanted.lifetimes_ms, pools=larger or None)
        if wanted.pause or wanted.resume:
            self._job.pause(*wanted.pause)
            self._job.resume(*wanted.resume)
            gap_ms = gap_ms or 0.0
        for name, bound_ms in wanted.bounds_ms.items():
            self._job.set_bound(name, bound_ms / 1000)
        return gap_ms

    def _note(self, wanted: Set) -> str | None:
        control = self._job.control
        if control is None or not control.applies or not (wanted.replicas or wanted.lifetimes_ms):
            return None
        return "its policy is on and may change this again; set it to recommend, and this stays"

    def _stop(self, timeout_s: float) -> Answer:
        drained = self._job.stop(timeout_s)
        if drained is None:
            status = self._job.status
            return Stopped(words=f"it was not drained: it is {status.state}, {status.message}")
        return Stopped(
            words=str(drained), commit=drained.commit, items=dict(drained.items), took_s=drained.took_s
        )


def commits_now(commits: CommitTotals | None) -> CommitsNow | None:
    """How they go in this moment; None where there are none."""
    if commits is None:
        return None
    return CommitsNow(
        count=commits.count,
        voids=commits.voids,
        rollbacks=commits.rollbacks,
        epoch=commits.epoch,
        age_s=None if commits.last_s is None else max(0.0, time.monotonic() - commits.last_s),
        took_ms=commits.took_ms,
    )


def heaviest_groups(graph: Graph, keyed: Mapping[str, KeyLoad]) -> dict[str, list[tuple[int, float]]]:
    """Of the keys of each task that was sent something by key, with their shares of that."""
    loads = {
        task.name: merged_loads(keyed.get(stream.name, KeyLoad()) for stream in graph.inputs_of(task.name))
        for task in graph.tasks
    }
    return {
        task: [(group, count / load.total) for group, count in load.heaviest(HEAVY)]
        for task, load in loads.items()
        if load.total
    }


def rates(progress: Sequence[Mapping[str, Any]], window_s: float) -> dict[str, float]:
    """Items per second into each task over the last entries of its progress, nothing if there are too few.

    Totals of a task may fall when Spark has started the flow again; such a time has no rate.
    """
    if len(progress) < 2:
        return {}
    last = progress[-1]
    first = next(entry for entry in progress if last["time_s"] - entry["time_s"] <= window_s)
    took_s = last["time_s"] - first["time_s"]
    if took_s <= 0:
        return {}
    counts = {
        task: totals["items_in"] - first["tasks"].get(task, totals)["items_in"]
        for task, totals in last["tasks"].items()
    }
    return {task: count / took_s for task, count in counts.items() if count >= 0}


def _check(layout: Layout, wanted: Set) -> None:
    """Everything before anything is changed."""
    graph = layout.graph
    for name, count in wanted.replicas.items():
        task = graph.task(name)
        lowest, highest = task.parallelism.min, task.parallelism.max
        if not lowest <= count <= highest:
            declared = f"{lowest} to {highest}" if lowest < highest else f"always {lowest}"
            raise FlowError(
                f'{count} replicas of {task.kind} "{name}" of flow "{graph.name}" cannot be set:'
                f" it was declared with {declared}"
            )
    for stream, lifetime_ms in wanted.lifetimes_ms.items():
        graph.stream(stream)
        if not 0 <= lifetime_ms < float("inf"):
            raise FlowError(f'a lifetime of {lifetime_ms:g} ms for stream "{stream}" is none; give 0 or more')
    for constraint, bound_ms in wanted.bounds_ms.items():
        layout.with_bound(constraint, bound_ms)
    for source in (*wanted.pause, *wanted.resume):
        graph.source(source)
        if source in wanted.pause and source in wanted.resume:
            raise FlowError(f'source "{source}" of flow "{graph.name}" cannot be paused and resumed at once')
