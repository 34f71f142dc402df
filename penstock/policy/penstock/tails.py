"""Bounds of percentiles: what the tail of the waits adds to their mean.

    q-th percentile of the latency = fixed + t_q (sum of mean waits)

For waits that are distributed exponentially, as those of busy queues are, t is -ln(1 - q): 3 for p95, 4.6 for
p99. It is learnt from the percentiles that were measured.
"""

import math
from collections.abc import Mapping

from penstock.policy.measured import finite, queue_wait_ms
from penstock.stats.snapshot import ConstraintSpec, Snapshot

STATISTICS = ("mean", "p95", "p99")
_FIRST = {"mean": 1.0, "p95": -math.log(0.05), "p99": -math.log(0.01)}
_GAIN = 0.2
_LIMITS = (1.0, 12.0)


def tail_of(constraint: ConstraintSpec, tails: Mapping[str, float]) -> float:
    """t of a constraint."""
    return tails.get(constraint.name, _FIRST.get(constraint.statistic, 1.0))


def tails_after(
    snapshot: Snapshot, fixed_ms: Mapping[str, float], before: Mapping[str, float]
) -> dict[str, float]:
    """With the percentiles of one more interval."""
    found = dict(before)
    for one in snapshot.constraints:
        measured_ms = finite({"p95": one.p95_ms, "p99": one.p99_ms}.get(one.statistic))
        receivers = [snapshot.stream(name).receiver for name in one.streams()]
        waits = [queue_wait_ms(snapshot, name) for name in receivers if snapshot.tasks[name].elastic]
        wait_ms = math.fsum(wait for wait in waits if wait is not None)
        if measured_ms is None or one.name not in fixed_ms or wait_ms <= 0.0:
            continue
        low, high = _LIMITS
        seen = min(high, max(low, (measured_ms - fixed_ms[one.name]) / wait_ms))
        found[one.name] = (1.0 - _GAIN) * tail_of(one, before) + _GAIN * seen
    return found
