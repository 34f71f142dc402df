"""ResolveBottlenecks: the last resort when a task cannot keep up.

    p* = min(p_max, 2 p max(1, rho))  for every task with rho >= rho_max, a value close to 1    (thesis, 4.12)

A bottleneck spoils the measurements: its queue grows and then throttles those who send, so no queueing
formula applies. Doubling brings its utilization to half or less, and Rebalance can act again later.
"""

import math

from penstock.policy.measured import utilization
from penstock.policy.scaling_model import LARGEST
from penstock.stats.snapshot import TaskStats


def is_bottleneck(task: TaskStats, limit: float) -> bool:
    """Whether the task's utilization is known and at or above `limit`; a source has no queue to grow."""
    load = utilization(task)
    return task.kind != "source" and load is not None and load >= limit


def resolved_parallelism(task: TaskStats) -> int:
    """The new number of replicas of a bottleneck, never fewer than it has.

    A task whose number is fixed, or that already has all it may have, keeps it: scaling cannot help.
    """
    if not task.elastic:
        return task.parallelism
    load = max(1.0, utilization(task) or 1.0)
    wanted = math.ceil(min(2 * task.parallelism * load, LARGEST))
    return max(task.parallelism, task.within_limits(wanted))
