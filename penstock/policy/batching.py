"""Adaptive output batching: how long each constrained stream may collect items before it ships them.

Thesis, algorithm 3, for every channel e of a constraint with bound l and n streams:

    target = max(0, w_ob (l - e.dsl - e.usl) / n)                 the mean batching delay that is wanted
    delta  = target - obl_e                                       obl_e: the mean batching delay measured
    e.oblt = max(0, min(2 target, e.oblt + delta))                the new batch lifetime

Adding delta to the lifetime adds it to every item's delay, so two intervals suffice; 2 target bounds the
lifetime where envelopes fill up before it ends. If several constraints hold a channel, the smallest wins.

Batching may yield to queues, by a share y of what it has (none in the thesis). Then w_ob becomes

    w = min(w_ob, max((1 - y) w_ob, 1 - W / (l - L)))             W, L: queue waits and latencies of the tasks

so that batching, queues and tasks stay within l as long as the queues take no more than 1 - (1 - y) w_ob.
Items also wait for those before them in their envelope, so shorter lifetimes shorten queues, too.
"""

import itertools
import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from penstock.policy.batching_graph import Channel, Replica, RuntimeGraph, average_graph
from penstock.policy.batching_latency import downstream_latencies_ms, upstream_latencies_ms
from penstock.policy.decision import Reason
from penstock.policy.measured import finite, output_batch_ms, queue_wait_ms, task_latency_ms
from penstock.stats.snapshot import ConstraintSpec, Snapshot


@dataclass(frozen=True, slots=True)
class Batching:
    """New batch lifetimes by stream, in ms, and the reasons for them."""

    lifetimes_ms: dict[str, float]
    reasons: list[Reason]


def batch_targets_ms(
    graph: RuntimeGraph, constraint: ConstraintSpec, latency_ms: Mapping[Replica, float], weight: float
) -> dict[Channel, float]:
    """The mean batching delay wanted on each channel of one constraint (algorithm 3, lines 1-6)."""
    down_ms = downstream_latencies_ms(graph, constraint.sequence, latency_ms)
    up_ms = upstream_latencies_ms(graph, constraint.sequence, latency_ms)
    streams = max(1, len(constraint.streams()))
    return {
        channel: max(0.0, weight * (constraint.latency_ms - down_ms[channel] - up_ms[channel]) / streams)
        for channel in up_ms
    }


def adjusted_lifetime_ms(target_ms: float, measured_ms: float, lifetime_ms: float) -> float:
    """The next batch lifetime of a channel (algorithm 3, lines 7-8)."""
    return max(0.0, min(2 * target_ms, lifetime_ms + target_ms - measured_ms))


def smallest_targets_ms(
    wanted: Iterable[tuple[ConstraintSpec, Mapping[Channel, float]]],
) -> dict[Channel, tuple[float, ConstraintSpec]]:
    """One target for each channel, the smallest that a constraint asks for, and whose it is (4.5.2)."""
    smallest: dict[Channel, tuple[float, ConstraintSpec]] = {}
    for constraint, targets in wanted:
        for channel, target_ms in targets.items():
            if channel not in smallest or target_ms < smallest[channel][0]:
                smallest[channel] = (target_ms, constraint)
    return smallest


def yielding_weight(weight: float, yields: float, waits_ms: float, left_ms: float) -> float:
    """w: the share of what the tasks leave that queues of this length leave to batching."""
    taken = waits_ms / left_ms if left_ms > 0 else 1.0
    return min(weight, max((1 - yields) * weight, 1 - taken))


def adjust_lifetimes(snapshot: Snapshot, weight: float, yields: float = 0.0) -> Batching:
    """The batch lifetimes of all constrained streams that ship envelopes and were measured."""
    wanted = []
    reasons = []
    for constraint in snapshot.constraints:
        latency_ms, missing = _latencies_ms(snapshot, constraint)
        if missing:
            why = (
                f"{missing}.latency_ms was not measured, so the streams of {constraint.name} stay as they are"
            )
            reasons.append(Reason(rule="unknown", constraint=constraint.name, task=missing, why=why))
            continue
        graph = average_graph(snapshot, constraint)
        left_ms = constraint.latency_ms - math.fsum(latency_ms.values())
        own = yielding_weight(weight, yields, _waits_ms(snapshot, constraint), left_ms)
        wanted.append((constraint, batch_targets_ms(graph, constraint, latency_ms, own)))
    lifetimes_ms = {}
    for channel, (target_ms, constraint) in smallest_targets_ms(wanted).items():
        if is_chained(snapshot, channel.sender.task, channel.receiver.task):
            continue
        reason = _adjusted(snapshot, constraint, channel.stream, target_ms)
        reasons.append(reason)
        if isinstance(reason.after, float):
            lifetimes_ms[channel.stream] = reason.after
    return Batching(lifetimes_ms, reasons)


def is_chained(snapshot: Snapshot, sender: str, receiver: str) -> bool:
    """Whether the two tasks run in one process now, so that nothing is shipped between them."""
    return any((sender, receiver) in itertools.pairwise(chain) for chain in snapshot.chains)


def _latencies_ms(snapshot: Snapshot, constraint: ConstraintSpec) -> tuple[dict[Replica, float], str | None]:
    """The latency of each constrained task, or the name of a task for which it is not known."""
    latencies_ms = {}
    for name in constraint.tasks():
        latency_ms = task_latency_ms(snapshot.tasks[name])
        if latency_ms is None:
            return {}, name
        latencies_ms[Replica(name, 0)] = latency_ms
    return latencies_ms, None


def _waits_ms(snapshot: Snapshot, constraint: ConstraintSpec) -> float:
    """How long items wait before the tasks of a constraint, as far as that was measured."""
    return math.fsum(queue_wait_ms(snapshot, name) or 0.0 for name in constraint.tasks())


def _adjusted(snapshot: Snapshot, constraint: ConstraintSpec, name: str, target_ms: float) -> Reason:
    stream = snapshot.stream(name)
    measured_ms, lifetime_ms = output_batch_ms(stream), finite(stream.batch_lifetime_ms)
    if measured_ms is None or lifetime_ms is None:
        missing = "batch_lifetime_ms" if lifetime_ms is None else "output_batch_ms"
        why = f"{name}.{missing} was not measured, so its batch lifetime stays as it is"
        return Reason(rule="unknown", constraint=constraint.name, stream=name, why=why)
    return Reason(
        rule="adjust_lifetimes",
        constraint=constraint.name,
        stream=name,
        before=lifetime_ms,
        after=adjusted_lifetime_ms(target_ms, measured_ms, lifetime_ms),
        inputs={"output_batch_ms": measured_ms, "target_ms": target_ms},
        prediction={"output_batch_ms": target_ms},
        why=f"{name} may spend {target_ms:.3g} ms of the {constraint.latency_ms:g} ms of {constraint.name}"
        f" on batching and spends {measured_ms:.3g} ms",
    )
