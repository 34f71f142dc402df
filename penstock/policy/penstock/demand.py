"""What will come to each task: the rates of the sources, through the whole graph in one walk.

    rate of a task = sum over its streams of (rate of the sender) * (items of the stream for each of its)

A task behind a bottleneck is given what will come when the bottleneck is none any more, so all of a row grow
at once. A source that is behind sends what is due and, for `drain_s`, what it owes.

What has piled up before a task stays with the replicas that have it, in most engines: new replicas take only
what is new. A replica with x seconds of work before it has drained that after d seconds if 1 - x / d of its
time is enough for what comes, so a task with b busy replicas needs

    p = b / (1 - x / d),    d = max(drain_s, x k / (k - 1)),    k = 2.5

and never more than k b. With k b replicas it takes x k / (k - 1) seconds and costs b x k^2 / (k - 1)
replica-seconds: least at k = 2, 4 % more at 2.5, where it is a sixth sooner. As long as nobody knows whether
replicas can be taken away again without a restart, k is 1.5.
"""

import math
from collections.abc import Mapping
from types import MappingProxyType

from penstock.policy.measured import finite
from penstock.policy.penstock.counted import Counted
from penstock.stats.snapshot import Snapshot, TaskStats

TIMES, CAREFUL_TIMES = 2.5, 1.5
"""k."""
_NONE: Mapping[str, float] = MappingProxyType({})


def due_per_s(task: TaskStats) -> float | None:
    """What is due at a source."""
    return finite(task.rate_total)


def owed_per_s(snapshot: Snapshot, drain_s: float) -> dict[str, float]:
    """What sources that are behind send on top."""
    found = {}
    for name, task in snapshot.tasks.items():
        lag, rate = finite(task.lag_items), due_per_s(task)
        # What comes in a twentieth of an interval is on its way.
        if task.kind == "source" and lag and rate is not None and lag > 0.05 * rate * snapshot.interval_s:
            found[name] = lag / (task.catch_up_s or 2.0 * drain_s)
    return found


def demand(
    snapshot: Snapshot,
    counts: Counted,
    rates: Mapping[str, float],
    drained: Mapping[str, float] = _NONE,
    onsets: Mapping[str, float] = _NONE,
) -> dict[str, float]:
    """Items per second of each task; tasks of which that is unknown are left out.

    What tasks drain of their backlogs comes to the tasks behind them on top. To tasks with an onset
    (onset.py) no less comes than that.
    """
    found: dict[str, float] = dict(rates)
    for name in snapshot.topological_order():
        if snapshot.tasks[name].kind == "source":
            continue
        parts = [
            _part(
                found.get(stream.sender),
                counts.ratio(snapshot, stream),
                drained.get(stream.sender, 0.0),
            )
            for stream in snapshot.streams_into(name)
        ]
        known = [part for part in parts if part is not None]
        if parts and len(known) == len(parts):
            found[name] = max(math.fsum(known), onsets.get(name, 0.0))
    return found


def _part(rate: float | None, ratio: float | None, drained: float) -> float | None:
    if rate == 0.0 == drained:
        return 0.0
    return None if rate is None or ratio is None else (rate + drained) * ratio


def draining(busy: float, work_s: float, drain_s: float, most_times: float) -> int:
    """p, with `work_s` seconds of work before each replica."""
    if work_s <= 0.0:
        return 1
    return max(1, math.ceil(busy / (1.0 - work_s / within_s(work_s, drain_s, most_times)) * (1.0 - 1e-9)))


def within_s(work_s: float, drain_s: float, most_times: float) -> float:
    """d."""
    return max(drain_s, work_s * most_times / (most_times - 1.0))
