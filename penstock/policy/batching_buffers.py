"""The buffer sizing of 2012, as an option beside batch lifetimes.

HPDC 2012, section 3.3.1, only for sequences that break their constraint; obl: the mean batching delay in ms:

    size* = max(smallest, size r^obl)    if obl is above a threshold and above the sender's latency     (2)
    size* = min(largest, s size)         if obl is about 0                                              (3)

with r = 0.98 and s = 1.1. At a given rate an envelope's size and its lifetime are proportional, and Penstock
turns lifetimes, so the rule is applied to the lifetime: the size of an envelope in milliseconds of items.
"""

import math
from dataclasses import dataclass

from penstock.policy.batching import Batching, is_chained
from penstock.policy.decision import Reason
from penstock.policy.measured import finite, output_batch_ms, sequence_latency_ms, task_latency_ms
from penstock.stats.snapshot import ConstraintSpec, Snapshot


@dataclass(frozen=True, slots=True)
class BufferRules:
    """The constants of the rule; sizes are lifetimes in ms."""

    shrink: float = 0.98
    grow: float = 1.1
    threshold_ms: float = 5.0
    negligible_ms: float = 0.1
    smallest_ms: float = 0.5
    largest_ms: float = 1000.0


def adjusted_size(size: float, batch_ms: float, sender_latency_ms: float, rules: BufferRules) -> float:
    """The next size of one channel's buffer, in the unit of `size` (equations 2 and 3)."""
    if batch_ms > rules.threshold_ms and batch_ms > sender_latency_ms:
        return max(rules.smallest_ms, size * math.pow(rules.shrink, batch_ms))
    if batch_ms <= rules.negligible_ms:
        return min(rules.largest_ms, rules.grow * max(size, rules.smallest_ms))
    return size


def size_buffers(snapshot: Snapshot, rules: BufferRules) -> Batching:
    """New lifetimes for the streams of every constraint that is broken; all others stay."""
    batching = Batching({}, [])
    for constraint in snapshot.constraints:
        latency_ms = sequence_latency_ms(snapshot, constraint)
        if latency_ms is None:
            why = f"a latency of {constraint.name} was not measured, so its streams stay as they are"
            batching.reasons.append(Reason(rule="unknown", constraint=constraint.name, why=why))
        elif latency_ms > constraint.latency_ms:
            for name in constraint.streams():
                _size(snapshot, constraint, name, rules, batching)
    return batching


def _size(
    snapshot: Snapshot, constraint: ConstraintSpec, name: str, rules: BufferRules, batching: Batching
) -> None:
    stream = snapshot.stream(name)
    if is_chained(snapshot, stream.sender, stream.receiver):
        return
    batch_ms, lifetime_ms = output_batch_ms(stream), finite(stream.batch_lifetime_ms)
    if batch_ms is None or lifetime_ms is None:
        why = f"the batching of {name} was not measured, so its batch lifetime stays as it is"
        batching.reasons.append(Reason(rule="unknown", constraint=constraint.name, stream=name, why=why))
        return
    sender_ms = task_latency_ms(snapshot.tasks[stream.sender]) or 0.0
    wanted_ms = adjusted_size(lifetime_ms, batch_ms, sender_ms, rules)
    batching.lifetimes_ms[name] = wanted_ms
    batching.reasons.append(
        Reason(
            rule="size_buffers",
            constraint=constraint.name,
            stream=name,
            before=lifetime_ms,
            after=wanted_ms,
            inputs={"output_batch_ms": batch_ms, "sender_latency_ms": sender_ms},
            why=f"{constraint.name} is broken and items wait {batch_ms:.3g} ms for their envelope on {name}",
        )
    )
