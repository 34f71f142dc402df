"""From what the stages measured to a snapshot."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec
import numpy as np

from penstock.stats.snapshot import (
    ConstraintSpec,
    InstanceStats,
    QueueStats,
    Snapshot,
    StreamStats,
    TaskStats,
)

if TYPE_CHECKING:
    from collections.abc import Mapping

    from penstock.sim.latencies import Latencies
    from penstock.sim.meters import TaskMeter
    from penstock.sim.network import Network
    from penstock.sim.stage import Stage


def snapshot_of(
    network: Network,
    interval_s: float,
    now_s: float,
    *,
    latencies: Mapping[str, Latencies],
    cores_used: float,
    cores_leased: float,
) -> Snapshot:
    """Everything a policy may know about the interval that ends now, and what only reports read."""
    flow = network.flow
    tasks = {task.name: _task_stats(network, task.name, interval_s) for task in flow.tasks}
    streams = [_stream_stats(network, stream.name, now_s) for stream in flow.streams]
    return Snapshot(
        interval_s=interval_s,
        tasks=tasks,
        streams=streams,
        constraints=[_with_percentiles(c, latencies.get(c.name)) for c in flow.constraints],
        chains=network.chains,
        cores_used=cores_used,
        cores_leased=cores_leased,
    )


def _with_percentiles(constraint: ConstraintSpec, seen: Latencies | None) -> ConstraintSpec:
    if seen is None:
        return constraint
    return msgspec.structs.replace(
        constraint,
        p95_ms=seen.quantile_ms(0.95),
        p99_ms=seen.quantile_ms(0.99),
        samples=seen.count,
        late=None if constraint.statistic == "mean" else seen.above(constraint.latency_ms),
    )


def _task_stats(network: Network, name: str, interval_s: float) -> TaskStats:
    model, stage = network.flow.task(name), network.stage_of(name)
    meter = stage.meter
    low, high = model.bounds
    out = [network.emitted_into(stream) for stream in network.flow.outputs_of(name)]
    emitted = np.add.reduce(out) if out else None
    source = network.sources.get(name)
    interarrival_s, interarrival_cv = meter.interarrival()
    seen = meter.observed_s > 0
    busy = meter.busy_s[seen] / meter.observed_s[seen]
    return TaskStats(
        kind=model.kind,
        parallelism=stage.replicas,
        min=low,
        max=high,
        elastic=model.elastic,
        chain=model.chain,
        rate_total=source.due_in_interval / interval_s if source else None,
        service_ms=_ms(meter.service.mean),
        service_cv=meter.service.cv,
        interarrival_ms=_ms(interarrival_s),
        interarrival_cv=interarrival_cv,
        queue_wait_ms=None if source else _ms(meter.queue_wait.mean),
        latency_ms=_ms(meter.latency.mean),
        latency_kind=None if source else model.latency,
        utilization=_share(busy.mean()) if busy.size else None,
        utilization_max=_share(busy.max()) if busy.size else None,
        cpu=_share(meter.useful_s[seen].sum() / meter.observed_s[seen].sum()) if busy.size else None,
        processed_total=float(meter.processed.sum()),
        emitted_total=None if emitted is None else float(emitted.sum()),
        useful_s=float(meter.useful_s.sum()) / stage.replicas,
        instances=_instances(meter, emitted),
        backlog_total=float(stage.backlog),
        lag_items=float(source.backlog) if source else None,
        catch_up_s=model.catch_up_s,
        baseline_service_ms=model.service_s * 1000.0 if model.service_s > 0.0 else None,
        worker=[f"{model.site}{w}" for w in range(-(-stage.replicas // model.per_worker))],
    )


def _instances(meter: TaskMeter, emitted: np.ndarray | None) -> list[InstanceStats]:
    sent = [None] * meter.processed.size if emitted is None else [float(n) for n in emitted]
    return [
        InstanceStats(useful_s=float(u), processed=float(p), emitted=e)
        for u, p, e in zip(meter.useful_s, meter.processed, sent, strict=True)
    ]


def _stream_stats(network: Network, name: str, now_s: float) -> StreamStats:
    stream = network.streams[name]
    receiver = network.stages[stream.model.receiver]
    number = [s.name for s in receiver.inputs].index(name)
    meter = receiver.meter.inputs[number]
    return StreamStats(
        origin=stream.model.sender,
        receiver=stream.model.receiver,
        wiring=stream.model.wiring,
        latency_ms=_ms(meter.latency.mean),
        output_batch_ms=_ms(meter.batching.mean),
        batch_lifetime_ms=stream.lifetime_s * 1000.0 if np.isfinite(stream.lifetime_s) else None,
        emitted_total=float(network.emitted_into(stream.model).sum()),
        queue=_queue(receiver, now_s) if len(receiver.inputs) == 1 else None,
    )


def _queue(receiver: Stage, now_s: float) -> QueueStats:
    oldest_s = receiver.oldest_s
    return QueueStats(
        items=float(receiver.backlog), age_ms=0.0 if oldest_s is None else _ms(now_s - oldest_s)
    )


def _ms(seconds: float | None) -> float | None:
    return None if seconds is None else max(0.0, seconds) * 1000.0


def _share(value: float) -> float:
    return max(0.0, float(value))
