"""A recorded run as a flow model, so that the simulator can be asked what another policy would have done.

Everything comes from the snapshots: the load of a source is what was due in each interval, a service time
the mean of the intervals weighted with the items processed, and the time on the way

    transport = channel latency - output batch latency - queue wait

the median over the intervals. Measured service times contain what the machine's load did to them, so the
modelled machine has cores enough for everybody. A recording of version 1 does not tell what a task sent into
each of its streams: then it is taken to have shared its items evenly among them.

What becomes of an item may change while a flow runs: the items of a stream for each that its sender has done
are those of many intervals, and anew where one differs by more than luck (policy/penstock/counted.py). A task
that keeps items for a while (latency read-write) is taken to send what it has at regular times. The simulator
tells how long the first item of such a window waits, which is all of it, so

    window = latency - service time
"""

from __future__ import annotations

import math
import statistics
from typing import TYPE_CHECKING

from penstock.policy.ds2_rates import observed_output_per_s
from penstock.policy.measured import output_batch_ms, queue_wait_ms
from penstock.policy.penstock.counted import LUCK, Ratio
from penstock.sim.distributions import Deterministic, Distribution, Gamma
from penstock.sim.load import Curve
from penstock.sim.model import ClusterModel, Costs, FlowModel, Keys, ModelError, StreamModel, TaskModel

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from penstock.stats.snapshot import Snapshot, StreamStats, TaskStats

# Variation below this is noise of the measurement, and a gamma distribution of it would be all spikes.
_LEAST_CV = 0.02
# A step shorter than this is rounding.
_SHORTEST_S = 1e-3
_LEAST_WINDOW_S = 1e-3
_CORES = 1e6
_KEYS = Keys(count=10_000, exponent=0.0)
_SITE = "recorded"


def recorded_model(
    snapshots: Sequence[Snapshot],
    name: str = "recorded",
    *,
    gaps: Distribution | None = None,
    queue_items: int | None = None,
    replica_start_s: float = 0.0,
    from_start: bool = True,
) -> FlowModel:
    """The flow of a recording, with its load over time and its first numbers of replicas.

    What a recording does not tell may be said: how regular the source is (`gaps`, by default as regular as
    can be), how long a queue may become, how long a new replica takes, and that these snapshots are not the
    first of their run.
    """
    if not snapshots:
        raise ModelError("a recording without snapshots cannot be simulated")
    first = snapshots[0]
    for number, snapshot in enumerate(snapshots):
        if snapshot.tasks.keys() != first.tasks.keys():
            raise ModelError(
                f"snapshot {number} of the recording has other tasks than those before it"
                f" ({', '.join(snapshot.tasks)}); only one flow can be simulated"
            )
    interval_s = statistics.fmean(snapshot.interval_s for snapshot in snapshots)
    return FlowModel(
        name,
        tuple(
            _task(task, snapshots, gaps, queue_items, from_start=from_start)
            for task in first.topological_order()
        ),
        tuple(_stream(stream, snapshots) for stream in first.streams),
        tuple(first.constraints),
        ClusterModel(cores_per_worker=_CORES, replica_start_s=replica_start_s),
        interval_s=interval_s,
        seconds=interval_s * len(snapshots),
    )


def _task(
    name: str,
    snapshots: Sequence[Snapshot],
    gaps: Distribution | None,
    queue_items: int | None,
    *,
    from_start: bool,
) -> TaskModel:
    begin = snapshots[0].tasks[name]
    seen = [snapshot.tasks[name] for snapshot in snapshots]
    cv = _mean(seen, lambda task: task.service_cv)
    source = begin.kind == "source"
    return TaskModel(
        name,
        begin.kind,
        begin.parallelism,
        minimum=begin.min if begin.elastic else None,
        maximum=(begin.max or begin.parallelism) if begin.elastic else None,
        service_s=_read_s(seen) if source else (_mean(seen, lambda task: task.service_ms) or 0.0) / 1000.0,
        service=Gamma(cv) if cv is not None and cv > _LEAST_CV else Deterministic(),
        load=_load(name, snapshots, from_start=from_start) if source else None,
        gaps=Deterministic() if gaps is None else gaps,
        every_s=_window_s(seen),
        latency=begin.latency_kind or "read_ready",
        queue_items=None if source else queue_items,
        site=_SITE,
        per_worker=1_000_000,
        chain=begin.chain,
        catch_up_s=begin.catch_up_s,
    )


def _window_s(seen: Sequence[TaskStats]) -> float | None:
    latency_ms, service_ms = (
        _mean(seen, lambda task: task.latency_ms),
        _mean(seen, lambda task: task.service_ms),
    )
    if seen[0].latency_kind != "read_write" or latency_ms is None or service_ms is None:
        return None
    window_s = (latency_ms - service_ms) / 1000.0
    return window_s if window_s >= _LEAST_WINDOW_S else None


def _read_s(source: Sequence[TaskStats]) -> float:
    """What a replica of an elastic source takes to read an item; others are as fast as their schedule."""
    known = [task for task in source if task.elastic and task.processed_total and task.useful_s is not None]
    items = sum(task.processed_total or 0.0 for task in known)
    return sum((task.useful_s or 0.0) * task.parallelism for task in known) / items if items else 0.0


def _load(name: str, snapshots: Sequence[Snapshot], *, from_start: bool) -> Curve:
    """Items per second of the source; what was not measured is as in the interval before.

    A source that began inside the first interval of its run has sent less in it than its rate says.
    """
    known = [snapshot.tasks[name].rate_total for snapshot in snapshots]
    first = next((value for value in known if value is not None), None)
    if first is None:
        raise ModelError(f"task {name!r}: the recording has no rate_total of this source")
    rates: list[float] = []
    for measured in known:
        rates.append(measured if measured is not None else rates[-1] if rates else first)
    silent_s = _silent_s(snapshots[0], name, rates[0]) if from_start else 0.0
    return _curve([(silent_s, 0.0), (snapshots[0].interval_s - silent_s, rates[0])], rates, snapshots)


def _curve(first: list[tuple[float, float]], values: Sequence[float], snapshots: Sequence[Snapshot]) -> Curve:
    """Values by interval; one that lies between those of the intervals around it is a step inside its own."""
    steps = [*first]
    for before, snapshot, value, after in zip(
        values, snapshots[1:], values[1:], [*values[2:], values[-1]], strict=False
    ):
        inside = min(before, after) < value < max(before, after)
        late_s = snapshot.interval_s * ((value - before) / (after - before) if inside else 0.0)
        steps += [(snapshot.interval_s - late_s, before if inside else value), (late_s, after)]
    return Curve.steps([step for step in steps if step[0] > _SHORTEST_S])


def _silent_s(first: Snapshot, name: str, rate_per_s: float) -> float:
    """How long a source sent nothing at the beginning of the first interval."""
    sent_per_s = observed_output_per_s(first.tasks[name], first.interval_s)
    if sent_per_s is None or not rate_per_s:
        return 0.0
    return first.interval_s * max(0.0, 1.0 - sent_per_s / rate_per_s)


def _stream(stream: StreamStats, snapshots: Sequence[Snapshot]) -> StreamModel:
    ways = (_transport_ms(snapshot, stream.name) for snapshot in snapshots)
    known = [way_ms for way_ms in ways if way_ms is not None]
    return StreamModel(
        stream.sender,
        stream.receiver,
        stream.wiring,
        lifetime_ms=stream.batch_lifetime_ms or 0.0,
        together=True,
        paused=snapshots[0].tasks[stream.sender].kind == "source",
        ratio=_ratio(stream, snapshots),
        costs=Costs(transport_s=statistics.median(known) / 1000.0 if known else 0.0),
        keys=_KEYS if stream.wiring == "key" else None,
    )


def _ratio(stream: StreamStats, snapshots: Sequence[Snapshot]) -> Curve:
    """Items on a stream for each that its sender finished, or for each of its windows with an item in it; a
    broadcast is one, however many get it. What comes before the first that is known is like that."""
    window_s = _window_s([snapshot.tasks[stream.sender] for snapshot in snapshots])
    known, ratios = Ratio(), list[float | None]()
    for snapshot in snapshots:
        sent, done = _sent(stream, snapshot), _done(snapshot, stream.sender, window_s)
        if sent is not None and done:
            known = known.then(sent, done, LUCK * math.sqrt(sent) / done)
        ratios.append(known.value)
    first = next((ratio for ratio in ratios if ratio is not None), 1.0)
    values = [first if ratio is None else ratio for ratio in ratios]
    return _curve([(snapshots[0].interval_s, values[0])], values, snapshots)


def _done(snapshot: Snapshot, task: str, window_s: float | None) -> float | None:
    seen = snapshot.tasks[task]
    if seen.processed_total is None or window_s is None:
        return seen.processed_total
    return min(seen.processed_total, seen.parallelism * snapshot.interval_s / window_s)


def _sent(stream: StreamStats, snapshot: Snapshot) -> float | None:
    sender = snapshot.tasks[stream.sender]
    sent = snapshot.stream(stream.name).emitted_total
    if sent is None and sender.kind == "source":
        return sender.processed_total
    if sent is None and sender.emitted_total is not None:
        sent = sender.emitted_total / len(snapshot.streams_out_of(stream.sender))
    copies = snapshot.tasks[stream.receiver].parallelism if stream.wiring == "broadcast" else 1
    return None if sent is None else sent / copies


def _transport_ms(snapshot: Snapshot, stream: str) -> float | None:
    measured = snapshot.stream(stream)
    batch_ms, wait_ms = output_batch_ms(measured), queue_wait_ms(snapshot, measured.receiver)
    if measured.latency_ms is None or batch_ms is None or wait_ms is None:
        return None
    return max(0.0, measured.latency_ms - batch_ms - wait_ms)


def _mean(tasks: Iterable[TaskStats], value: Callable[[TaskStats], float | None]) -> float | None:
    """Over the intervals, each counting as many times as items were processed in it."""
    weighted = [
        (task.processed_total or 0.0, measured) for task in tasks if (measured := value(task)) is not None
    ]
    items = sum(weight for weight, _ in weighted)
    return sum(weight * measured for weight, measured in weighted) / items if items else None
