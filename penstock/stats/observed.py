"""From a flow and a global summary to the snapshot a policy reads."""

from collections.abc import Mapping, Sequence

from penstock.flow.graph import Graph, Stream, Task
from penstock.stats.snapshot import (
    ConstraintSpec,
    Snapshot,
    StreamStats,
    TaskStats,
    check_snapshot,
)
from penstock.stats.snapshot_structs import ARROW
from penstock.stats.summary import StreamSummary, Summary, TaskSummary

NO_TASK = TaskSummary()
NO_STREAM = StreamSummary()


def observed(
    graph: Graph,
    summary: Summary,
    *,
    interval_s: float,
    active: Mapping[str, int],
    lifetimes_ms: Mapping[str, float],
    chains: Sequence[Sequence[str]] = (),
) -> Snapshot:
    """The snapshot of one interval; tasks and streams that did not report have no measurements.

    `active` is the number of replicas of each task now, `lifetimes_ms` the batch lifetime of each stream.
    """
    snapshot = Snapshot(
        interval_s=interval_s,
        tasks={
            task.name: _task(task, summary.tasks.get(task.name, NO_TASK), active[task.name], interval_s)
            for task in graph.tasks
        },
        streams=[
            _stream(stream, summary.streams.get(stream.name, NO_STREAM), lifetimes_ms.get(stream.name))
            for stream in graph.streams
        ],
        constraints=[
            ConstraintSpec(
                name=constraint.name,
                sequence=list(constraint.sequence),
                latency_ms=constraint.latency_ms,
                statistic=constraint.statistic,
                window_s=constraint.window_s,
                share=constraint.share,
            )
            for constraint in graph.constraints
        ],
        chains=[list(chain) for chain in chains],
    )
    check_snapshot(snapshot)
    return snapshot


def _task(task: Task, summary: TaskSummary, active: int, interval_s: float) -> TaskStats:
    emitted_total = summary.emitted.sum
    is_source = task.kind == "source"
    return TaskStats(
        kind=task.kind,
        parallelism=active,
        min=task.parallelism.min,
        max=task.parallelism.max,
        elastic=task.parallelism.elastic,
        chain=task.chain,
        rate_total=_rate_total(summary, interval_s) if is_source else None,
        service_ms=summary.service_ms.mean,
        service_cv=summary.service_cv.mean,
        interarrival_ms=summary.interarrival_ms.mean,
        interarrival_cv=summary.interarrival_cv.mean,
        queue_wait_ms=summary.queue_wait_ms.mean,
        latency_ms=summary.latency_ms.mean,
        lag_ms=summary.lag_ms.mean,
        lag_items=summary.lag_items.sum,
        catch_up_s=task.catch_up_s,
        latency_kind=None if is_source else task.latency_kind,
        utilization=summary.utilization.mean,
        utilization_max=summary.utilization.largest,
        cpu=summary.cpu.mean,
        processed_total=summary.processed.sum,
        emitted_total=emitted_total,
        useful_s=summary.useful_s.mean,
        instances=[summary.instances[number] for number in sorted(summary.instances)] or None,
        backlog_total=summary.backlog.sum,
        baseline_service_ms=summary.baseline_service_ms.mean,
        worker=[summary.workers[number] for number in sorted(summary.workers)] or None,
    )


def _rate_total(summary: TaskSummary, interval_s: float) -> float | None:
    """What is due from a source, sent or not; what it sent if not all of its replicas know due times."""
    if summary.due_per_s.count and summary.due_per_s.count == summary.processed.count:
        return summary.due_per_s.sum
    return None if summary.processed.sum is None else summary.processed.sum / interval_s


def _stream(stream: Stream, summary: StreamSummary, lifetime_ms: float | None) -> StreamStats:
    return StreamStats(
        origin=stream.name.partition(ARROW)[0],
        receiver=stream.receiver,
        wiring=stream.wiring,
        latency_ms=summary.latency_ms.mean,
        output_batch_ms=summary.output_batch_ms.mean,
        batch_lifetime_ms=lifetime_ms,
        emitted_total=summary.emitted.sum,
    )
