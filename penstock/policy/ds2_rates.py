"""True rates of a task: what its replicas could do if they never waited (DS2, OSDI 2018, equations 1-6).

For replica k in a window of W seconds, of which it spent W_u usefully (reading, processing, writing; not
waiting):

    lambda_p = R_prc / W_u    (1)        lambda_o = R_psd / W_u    (2)      true rates
    lambda_p^ = R_prc / W     (3)        lambda_o^ = R_psd / W     (4)      observed rates
    o[lambda_p] = sum_k lambda_p_k (5)   o[lambda_o] = sum_k lambda_o_k (6) of the whole task

A replica that was idle (W_u = 0) has no true rate. It is left out and the sum scaled up to all replicas,
since the model assumes that replicas do not differ. Without the numbers of every replica, the task's
totals are used.
"""

from dataclasses import dataclass
from enum import Enum

from penstock.policy.measured import finite
from penstock.stats.snapshot import InstanceStats, TaskStats

# Less than a nanosecond of work, or an item in thirty years, is nothing; dividing by it would be x/0.
_NOTHING = 1e-9


class Knowledge(Enum):
    """How much the measurements of a task say about its capacity."""

    KNOWN = "known"
    IDLE = "idle"  # measured, but nothing was done in the window: 0/0
    MISSING = "missing"  # not measured


@dataclass(frozen=True, slots=True)
class TrueRates:
    """Aggregated true rates of a task and its selectivity; None for what cannot be known."""

    knowledge: Knowledge
    processing_per_s: float | None = None
    selectivity: float | None = None


def true_rates(task: TaskStats) -> TrueRates:
    """Equations 1, 2, 5 and 6; the selectivity is o[lambda_o] / o[lambda_p]."""
    works = _works(task)
    if works is None:
        # Without useful time there is no capacity, but what goes in and comes out still gives a selectivity.
        return TrueRates(
            Knowledge.MISSING, None, _ratio(finite(task.emitted_total), finite(task.processed_total))
        )
    busy = [
        (processed / useful_s, emitted, useful_s)
        for processed, emitted, useful_s in works
        if useful_s > _NOTHING
    ]
    processing_per_s = sum(rate for rate, _, _ in busy)
    if processing_per_s < _NOTHING:
        return TrueRates(Knowledge.IDLE)
    if any(emitted is None for _, emitted, _ in busy):
        selectivity = None
    else:
        output_per_s = sum((emitted or 0.0) / useful_s for _, emitted, useful_s in busy)
        selectivity = output_per_s / processing_per_s
    return TrueRates(Knowledge.KNOWN, processing_per_s * task.parallelism / len(busy), selectivity)


def missing_fields(task: TaskStats) -> str:
    """What would have to be measured, in the words of the snapshot."""
    if task.kind == "source":
        return "rate_total"
    if _works(task) is None:
        return "processed_total or useful_s, and the instances of all its replicas"
    return "emitted_total"


def observed_processing_per_s(task: TaskStats, interval_s: float) -> float | None:
    """Equation 3, of the whole task."""
    processed = finite(task.processed_total)
    return None if processed is None else processed / interval_s


def observed_output_per_s(task: TaskStats, interval_s: float) -> float | None:
    """Equation 4, of a source: each item counts once, on however many streams it leaves."""
    sent = finite(task.processed_total)
    if sent is None:
        sent = finite(task.emitted_total)
    return None if sent is None else sent / interval_s


def _works(task: TaskStats) -> list[tuple[float, float | None, float]] | None:
    """(processed, emitted, useful seconds) of every replica, or one entry for the average replica."""
    instances = task.instances or []
    if len(instances) == task.parallelism:
        measured = [_work(instance) for instance in instances]
        complete = [work for work in measured if work is not None]
        if len(complete) == task.parallelism:
            return complete
    processed, useful_s, emitted = map(finite, (task.processed_total, task.useful_s, task.emitted_total))
    if processed is None or useful_s is None:
        return None
    each = None if emitted is None else emitted / task.parallelism
    return [(processed / task.parallelism, each, useful_s)]


def _work(instance: InstanceStats) -> tuple[float, float | None, float] | None:
    processed, useful_s = finite(instance.processed), finite(instance.useful_s)
    return None if processed is None or useful_s is None else (processed, finite(instance.emitted), useful_s)


def _ratio(above: float | None, below: float | None) -> float | None:
    return above / below if above is not None and below else None
