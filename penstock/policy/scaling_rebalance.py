"""Rebalance: the fewest replicas in total whose predicted queue waits fit into a limit.

    minimise sum of p_i  subject to  sum of W_i(p_i) <= limit,  min_i <= p_i <= max_i    (thesis, 4.8-4.11)

Thesis algorithm 7 adds one replica at a time where it shortens the wait most. Every W_i falls ever more
slowly, so the best single steps are also the best in total. ICDCS 2015, algorithm 1, takes all the steps of a
task at once, until another task gains more. As printed its step ignores the limit and may pass it; here a
step also ends where the limit is met (its P_W), and so both forms give the same replicas.
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

from penstock.policy.scaling_model import LARGEST, QueueWait

Step = Literal["variable", "unit"]


@dataclass(frozen=True, slots=True)
class Candidate:
    """A task in the problem: its model, and the limits of its replicas (`most` of None: no limit)."""

    model: QueueWait
    fewest: int
    most: int | None

    def largest(self) -> int:
        """The most replicas the search considers."""
        return LARGEST if self.most is None else self.most

    def start(self) -> int:
        """Where the search begins: below the first stable size every wait is infinite."""
        return min(max(self.fewest, self.model.smallest_stable()), self.largest())

    def fallback(self) -> int:
        """What an infeasible problem gives: the maximum (algorithm 7, line 2), if there is one."""
        return self.start() if self.most is None else self.most


@dataclass(frozen=True, slots=True)
class Rebalanced:
    """The replicas chosen. Infeasible: the limit cannot be met, and every task is at its maximum."""

    replicas: dict[str, int]
    wait_ms: float
    feasible: bool


def rebalance(tasks: Mapping[str, Candidate], limit_ms: float, step: Step = "variable") -> Rebalanced:
    """Solve the problem for the tasks of one constraint; ties go to the task named first."""
    chosen = {name: task.largest() for name, task in tasks.items()}
    if _total_ms(tasks, chosen) > limit_ms:
        chosen = {name: task.fallback() for name, task in tasks.items()}
        return Rebalanced(chosen, _total_ms(tasks, chosen), feasible=False)
    chosen = {name: task.start() for name, task in tasks.items()}
    while _total_ms(tasks, chosen) > limit_ms:
        gains_ms = {
            name: task.model.gain_ms(chosen[name])
            for name, task in tasks.items()
            if chosen[name] < task.largest()
        }
        best = max(gains_ms, key=gains_ms.__getitem__)
        chosen[best] += 1 if step == "unit" else _stride(tasks, chosen, gains_ms, best, limit_ms)
    return Rebalanced(chosen, _total_ms(tasks, chosen), feasible=True)


def _stride(
    tasks: Mapping[str, Candidate],
    chosen: Mapping[str, int],
    gains_ms: Mapping[str, float],
    best: str,
    limit_ms: float,
) -> int:
    """How many replicas single steps would add to `best` before they add to a rival or meet the limit."""
    task = tasks[best]
    targets = [task.largest(), _meets_limit(tasks, chosen, best, limit_ms)]
    names = list(gains_ms)
    rivals = [name for name in names if name != best and gains_ms[name] > 0]
    if rivals:
        rival = max(rivals, key=gains_ms.__getitem__)
        replicas = task.model.replicas_for_gain(gains_ms[rival])
        wins_tie = names.index(best) < names.index(rival)
        targets.append(replicas + (wins_tie and task.model.gain_ms(replicas) == gains_ms[rival]))
    return max(1, min(targets) - chosen[best])


def _meets_limit(
    tasks: Mapping[str, Candidate], chosen: Mapping[str, int], best: str, limit_ms: float
) -> int:
    """The smallest size of `best` that meets the limit, or its largest when the others alone pass it.

    Found by bisection: the closed form ceil(a / w + b) is one off where rounding matters.
    """
    task = tasks[best]
    largest = task.largest()
    if _total_ms(tasks, {**chosen, best: largest}) > limit_ms:
        return largest
    low, high = chosen[best], largest
    while high - low > 1:
        middle = (low + high) // 2
        if _total_ms(tasks, {**chosen, best: middle}) > limit_ms:
            low = middle
        else:
            high = middle
    return high


def _total_ms(tasks: Mapping[str, Candidate], chosen: Mapping[str, int]) -> float:
    return math.fsum(task.model.wait_ms(chosen[name]) for name, task in tasks.items())
