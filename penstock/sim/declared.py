"""A flow of the user's own as a flow model: what it declares, and what must be said or measured beside it.

Tasks, replicas, wirings, batch lifetimes and constraints are those of the flow. Service times, and how many
items a task sends for each that it gets, are given, or those of a recording (`recorded.py`). A source follows
the schedule it was declared with, the load that is given, or that of the recording. What neither says:

    a sink takes no time; a task sends one item for each; a hop takes 0.5 ms; a new replica takes 0.1 s

and the machine has cores enough for everybody.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from penstock.flow.layers import lay_out
from penstock.io.paced import Paced
from penstock.sim.distributions import Deterministic, Gamma
from penstock.sim.load import Curve
from penstock.sim.model import ClusterModel, Costs, FlowModel, Keys, ModelError, StreamModel, TaskModel
from penstock.stats.snapshot import ConstraintSpec

if TYPE_CHECKING:
    from collections.abc import Mapping

    from penstock.flow.graph import Graph, Stream, Task
    from penstock.flow.layers import Layout
    from penstock.io.schedule import Schedule
    from penstock.sim.distributions import Distribution

INTERVAL_S = 5.0
# How long a load without an end is simulated, if nobody says.
ENDLESS_S = 60.0
_HOP_S = 0.5e-3
_REPLICA_START_S = 0.1
_CORES = 1e6
_KEYS = Keys(count=10_000, exponent=0.0)
_SITE = "declared"


@dataclass(frozen=True, slots=True)
class Service:
    """How long a task takes for an item: the mean, and the coefficient of variation."""

    mean_s: float
    cv: float = 0.0


@dataclass(frozen=True, slots=True)
class Beside:
    """What a flow does not declare, by the names of its tasks; `measured` is asked for what is not given."""

    services: Mapping[str, Service] = field(default_factory=dict)
    loads: Mapping[str, Schedule] = field(default_factory=dict)
    ratios: Mapping[str, float] = field(default_factory=dict)
    measured: FlowModel | None = None


def declared_model(graph: Graph, beside: Beside, seconds: float | None = None) -> FlowModel:
    """The flow with what is said beside it, for `seconds`, or as long as its load lasts."""
    _check_names(graph, beside)
    layout = lay_out(graph)
    whole_s = _seconds(graph, beside) if seconds is None else seconds
    names = _stream_names(graph)
    return FlowModel(
        graph.name,
        tuple(_task(task, beside, whole_s) for task in graph.tasks),
        tuple(_stream(layout, stream, beside) for stream in graph.streams),
        tuple(
            ConstraintSpec(
                name=one.name,
                sequence=[names.get(element, element) for element in one.sequence],
                latency_ms=one.latency_ms,
                statistic=one.statistic,
                window_s=one.window_s,
                share=one.share,
            )
            for one in graph.constraints
        ),
        ClusterModel(cores_per_worker=_CORES, replica_start_s=_REPLICA_START_S),
        interval_s=INTERVAL_S,
        seconds=whole_s,
    )


def _check_names(graph: Graph, beside: Beside) -> None:
    """What is said must be about tasks that there are, and everything must be known."""
    for name in (*beside.services, *beside.ratios):
        if graph.task(name).kind == "source":
            raise ModelError(f"{name!r} is a source: it has a load, and no service time or ratio")
    for name in beside.loads:
        if graph.task(name).kind != "source":
            raise ModelError(f"{name!r} is no source: only sources have a load")
    unknown = [
        task.name
        for task in graph.tasks
        if task.kind == "task" and task.name not in beside.services and _measured(task, beside) is None
    ]
    if unknown:
        raise ModelError(
            f"how long {', '.join(unknown)} takes for an item is not known; say it (--service"
            f" {unknown[0]}=5ms), or name a recording of the flow (--measured FILE)"
        )


def _measured(task: Task, beside: Beside) -> TaskModel | None:
    """The task in the recording, if it is there."""
    found = () if beside.measured is None else beside.measured.tasks
    return next((one for one in found if one.name == task.name), None)


def _task(task: Task, beside: Beside, seconds: float) -> TaskModel:
    service_s, service = _service(task, beside)
    elastic = task.parallelism.elastic and task.kind != "source"
    return TaskModel(
        task.name,
        task.kind,
        task.parallelism.initial,
        minimum=task.parallelism.min if elastic else None,
        maximum=task.parallelism.max if elastic else None,
        service_s=service_s,
        service=service,
        load=_load(task, beside, seconds) if task.kind == "source" else None,
        gaps=Deterministic(),
        every_s=_window_s(task, beside),
        latency=task.latency_kind,
        site=_SITE,
        per_worker=1_000_000,
        catch_up_s=task.catch_up_s,
    )


def _window_s(task: Task, beside: Beside) -> float | None:
    """How long it keeps items: as measured, since what a window sends is of that one; else as declared."""
    seen = _measured(task, beside)
    if seen is not None:
        return seen.every_s
    return task.every_ms / 1000.0 if task.latency_kind == "read_write" and task.every_ms else None


def _service(task: Task, beside: Beside) -> tuple[float, Distribution]:
    """Mean and shape: as given, as measured, or nothing at all."""
    given, seen = beside.services.get(task.name), _measured(task, beside)
    if given is not None:
        return given.mean_s, Gamma(given.cv) if given.cv else Deterministic()
    return (0.0, Deterministic()) if seen is None else (seen.service_s, seen.service)


def _schedule(task: Task, beside: Beside) -> Schedule | None:
    """The one given; else, unless a recording has its load, the one the source was declared with."""
    if task.name in beside.loads:
        return beside.loads[task.name]
    if _measured(task, beside) is None and isinstance(task.body, Paced):
        return task.body.schedule
    return None


def _load(task: Task, beside: Beside, seconds: float) -> Curve:
    schedule, seen = _schedule(task, beside), _measured(task, beside)
    if schedule is not None:
        return _curve(schedule, seconds)
    if seen is not None and seen.load is not None:
        return seen.load
    raise ModelError(
        f"the load of source {task.name!r} is not known; say it (--load 500, --load 30s:200,1min:600,"
        " --load trace.csv), or name a recording of the flow (--measured FILE)"
    )


def _curve(schedule: Schedule, seconds: float) -> Curve:
    """The rates of a schedule, as often as it repeats, and nothing after its end."""
    steps: list[tuple[float, float]] = []
    covered_s = 0.0
    while covered_s < seconds and (schedule.repeats or not steps):
        spans = zip(schedule.spans_s, schedule.rates_per_s, strict=True)
        steps += [(min(span_s, seconds), rate) for span_s, rate in spans]
        covered_s += sum(schedule.spans_s)
    return Curve.steps([*steps, (1.0, 0.0)])


def _seconds(graph: Graph, beside: Beside) -> float:
    """Until the last source has ended."""
    return max(_ends_s(task, beside) for task in graph.tasks if task.kind == "source")


def _ends_s(task: Task, beside: Beside) -> float:
    schedule = _schedule(task, beside)
    if schedule is None:
        return ENDLESS_S if beside.measured is None else beside.measured.seconds
    end_s = math.inf if schedule.repeats else sum(schedule.spans_s)
    total = task.body.total if isinstance(task.body, Paced) and task.name not in beside.loads else None
    if total and total != schedule.total_items:
        end_s = schedule.due_s(total)  # it ends before its schedule does
    return ENDLESS_S if math.isinf(end_s) else max(end_s, INTERVAL_S)


def _stream(layout: Layout, stream: Stream, beside: Beside) -> StreamModel:
    seen = next(
        (
            one
            for one in (() if beside.measured is None else beside.measured.streams)
            if (one.sender, one.receiver) == (stream.sender, stream.receiver)
        ),
        None,
    )
    ratio = _ratio(seen, beside)
    if stream.sender in beside.ratios:
        ratio = Curve.constant(beside.ratios[stream.sender])
    layers = layout.unit_of(stream.receiver).layer - layout.unit_of(stream.sender).layer
    return StreamModel(
        stream.sender,
        stream.receiver,
        stream.wiring,
        lifetime_ms=stream.batch_lifetime_ms,
        together=True,
        paused=layout.graph.task(stream.sender).kind == "source",
        ratio=ratio,
        costs=Costs(transport_s=layers * _HOP_S) if seen is None else seen.costs,
        keys=_KEYS if stream.wiring == "key" else None,
    )


def _ratio(seen: StreamModel | None, beside: Beside) -> Curve:
    """As measured, over time if the load is that of the recording, too; else the mean of that time."""
    if seen is None or beside.measured is None:
        return Curve.constant(1.0)
    whole_s = beside.measured.seconds
    return Curve.constant(seen.ratio.area_until(whole_s) / whole_s) if beside.loads else seen.ratio


def _stream_names(graph: Graph) -> dict[str, str]:
    """What the simulator calls each stream; it knows one between two tasks."""
    names = {stream.name: f"{stream.sender}->{stream.receiver}" for stream in graph.streams}
    for name, called in names.items():
        if list(names.values()).count(called) > 1:
            raise ModelError(f"stream {name!r}: the simulator knows only one stream between two tasks")
    return names
