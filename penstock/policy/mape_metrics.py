"""Load of a task in three numbers and one (adaptive Storm with a MAPE loop, 2021, equations 1 and 2).

    U = e * mu / (r * t_w)      utilisation: time spent on events / time the active replicas had        (1a)
    E = 1 - e_b / e             slow-down of an event against its baseline                              (1b)
    Q = 1 - mu / q              part of the queue that was not processed                                (1c)
    delta = w_U * U + w_Q * Q + w_E * E                                                                 (2)

e: mean time of an event, e_b: the same without any load, mu: events processed, r: replicas, t_w: the
window, q: events queued. As in the public code, U is at most 1 and takes max(e, e_b), E and Q are at
least 0, and an empty queue has Q = 0. A window in which nothing was processed has U = E = 0: no event
took any time.
"""

from dataclasses import dataclass

from penstock.policy.measured import finite
from penstock.stats.snapshot import TaskStats


@dataclass(frozen=True, slots=True)
class Weights:
    """How much each number counts in delta."""

    utilization: float
    queue: float
    execution: float


@dataclass(frozen=True, slots=True)
class MapeMetrics:
    """U, Q and E of one task in one window."""

    utilization: float
    queue: float
    execution: float

    def delta(self, weights: Weights) -> float:
        """Equation 2."""
        return (
            self.utilization * weights.utilization
            + self.queue * weights.queue
            + self.execution * weights.execution
        )


def missing_fields(task: TaskStats) -> list[str]:
    """What would have to be measured before U, Q and E can be computed."""
    needed = ["processed_total", "backlog_total"]
    if task.processed_total != 0:
        needed += ["service_ms", "baseline_service_ms"]
    return [name for name in needed if finite(getattr(task, name)) is None]


def measure(task: TaskStats, window_s: float) -> MapeMetrics | None:
    """U, Q and E, or None if a field they need was not measured."""
    if missing_fields(task):
        return None
    processed, queued = task.processed_total or 0.0, task.backlog_total or 0.0
    queue = max(0.0, 1 - processed / queued) if queued > 0 else 0.0
    if processed == 0:
        return MapeMetrics(0.0, queue, 0.0)
    service_ms, baseline_ms = task.service_ms or 0.0, task.baseline_service_ms or 0.0
    busy_s = processed * max(service_ms, baseline_ms) / 1000
    execution = max(0.0, 1 - baseline_ms / service_ms) if service_ms > 0 else 0.0
    return MapeMetrics(min(1.0, busy_s / (task.parallelism * window_s)), queue, execution)
