"""Where the latency of a constraint goes: to batching, transport, queues and service, task by task.

The latency of a stream is batching + transport + queue (docs/statistics.md). Batching and the queue before a
task are measured; transport is what is left. Of a task with several inputs the queue is that of its average
item, so it is taken for at most what batching leaves.
"""

from dataclasses import dataclass
from typing import Final, Literal

from penstock.policy.measured import finite, output_batch_ms, queue_wait_ms, task_latency_ms
from penstock.stats.snapshot import ConstraintSpec, Snapshot

Kind = Literal["batching", "transport", "queue", "service"]
KINDS: Final[tuple[Kind, ...]] = ("batching", "transport", "queue", "service")


@dataclass(frozen=True, slots=True)
class Part:
    """A share of the latency, on the way to or inside `task`."""

    task: str
    kind: Kind
    ms: float


def latency_parts(snapshot: Snapshot, constraint: ConstraintSpec) -> list[Part] | None:
    """The parts, in the order of the sequence; None when one element was not measured."""
    parts: list[Part] = []
    for element in constraint.sequence:
        if element in snapshot.tasks:
            service_ms = task_latency_ms(snapshot.tasks[element])
            found = None if service_ms is None else [Part(element, "service", service_ms)]
        else:
            found = stream_parts(snapshot, element)
        if found is None:
            return None
        parts += found
    return parts


def stream_parts(snapshot: Snapshot, name: str) -> list[Part] | None:
    """Of one stream, on the way to its receiver; None when it was not measured."""
    stream = snapshot.stream(name)
    latency_ms = finite(stream.latency_ms)
    if latency_ms is None:
        return None
    batching_ms = min(latency_ms, output_batch_ms(stream) or 0.0)
    queue_ms = min(latency_ms - batching_ms, queue_wait_ms(snapshot, stream.receiver) or 0.0)
    transport_ms = latency_ms - batching_ms - queue_ms
    times: list[tuple[Kind, float]] = [
        ("batching", batching_ms),
        ("transport", transport_ms),
        ("queue", queue_ms),
    ]
    return [Part(stream.receiver, kind, ms) for kind, ms in times]
