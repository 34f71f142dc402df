"""The part of a bound that batching and queues may share.

The thesis divides all of it that the tasks leave: w_ob for batching, the rest for queues (4.9). That leaves
nothing for the time on the way between two tasks, and no room for error. Here a bound l becomes

    l' = share l - min(T, l / 8)     T = sum over streams of (channel latency - batching delay)
                                         - sum over tasks of queue wait,  as measured

so that the formulas of the thesis, applied to l', keep the sum of all parts at `share` of the bound. A longer
T is a queue in disguise (buffers fill up on the way to a bottleneck), which shipping earlier would only feed.
"""

import math
from typing import Literal

import msgspec

from penstock.policy.decision import Reason
from penstock.policy.measured import finite, output_batch_ms, queue_wait_ms
from penstock.stats.snapshot import ConstraintSpec, Snapshot

Transport = Literal["ignored", "measured"]

LARGEST_TRANSPORT = 1 / 8


def plan_bounds(snapshot: Snapshot, share: float, transport: Transport) -> tuple[Snapshot, list[Reason]]:
    """The snapshot with bounds that leave room, and a reason for each bound that became smaller."""
    constraints, reasons = [], []
    for constraint in snapshot.constraints:
        way_ms = _transport_ms(snapshot, constraint) if transport == "measured" else 0.0
        counted_ms = min(way_ms, LARGEST_TRANSPORT * constraint.latency_ms)
        planned_ms = share * constraint.latency_ms - counted_ms
        constraints.append(msgspec.structs.replace(constraint, latency_ms=planned_ms))
        if planned_ms < constraint.latency_ms:
            reasons.append(
                Reason(
                    rule="planned_bound",
                    constraint=constraint.name,
                    before=constraint.latency_ms,
                    after=planned_ms,
                    inputs={"transport_ms": way_ms},
                    why=f"{share:.0%} of the {constraint.latency_ms:g} ms of {constraint.name} may be used,"
                    f" and {counted_ms:.3g} ms of it goes by on the way between tasks",
                )
            )
    return msgspec.structs.replace(snapshot, constraints=constraints), reasons


def _transport_ms(snapshot: Snapshot, constraint: ConstraintSpec) -> float:
    """T; 0 where a part of it was not measured."""
    streams = [snapshot.stream(name) for name in constraint.streams()]
    latencies = [finite(stream.latency_ms) for stream in streams]
    known = [
        *latencies,
        *(_negative(output_batch_ms(stream)) for stream in streams),
        *(_negative(queue_wait_ms(snapshot, name)) for name in constraint.tasks()),
    ]
    if any(part is None for part in known):
        return 0.0
    return max(0.0, math.fsum(part for part in known if part is not None))


def _negative(value: float | None) -> float | None:
    return None if value is None else -value
