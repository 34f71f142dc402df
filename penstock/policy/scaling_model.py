"""The latency model of elastic scaling: Kingman's formula, fitted to the queue wait that was measured.

Thesis, section 4.6.2. Each replica is a GI/G/1 queue with mean service time S, mean inter-arrival time A and
their coefficients of variation cS and cA, measured while the task has p replicas:

    W^K   = S rho / (1 - rho) * (cA^2 + cS^2) / 2      with rho = S / A             (4.4, Kingman)
    e     = w / W^K                                     w: the measured queue wait   (4.5, 4.6)
    W(p*) = e S^2 p / (A p* - S p) * (cA^2 + cS^2) / 2                               (before 4.7)

Divided by A this is W(p*) = a / (p* - b) with b = S p / A, the replicas that would be busy all the time, and
a = e S b (cA^2 + cS^2) / 2. It assumes that items spread evenly over the replicas and that S, cS and cA stay.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass

# Where the search ends for a task without a maximum of its own.
LARGEST = 1_000_000


@dataclass(frozen=True, slots=True)
class FitLimits:
    """Bounds on the coefficient e; the public code of Nephele uses 0.8 and 1.2, the papers none."""

    lowest: float
    highest: float


@dataclass(frozen=True, slots=True)
class QueueWait:
    """W(p) = a / (p - b): the queue wait in ms of a task with p replicas."""

    a_ms: float
    b_replicas: float
    fit: float = 1.0

    def wait_ms(self, replicas: int) -> float:
        """The predicted wait; infinite for too few replicas to keep up."""
        spare = replicas - self.b_replicas
        if spare <= 0:
            return math.inf
        return self.a_ms / spare

    def gain_ms(self, replicas: int) -> float:
        """How much shorter the wait becomes by one more replica: a / (p - b) - a / (p + 1 - b)."""
        spare = replicas - self.b_replicas
        return math.inf if spare <= 0 else self.a_ms / (spare * (spare + 1))

    def replicas_for_gain(self, gain_ms: float) -> int:
        """The smallest p where one more replica gains at most `gain_ms`, which is above 0.

        P_Delta of ICDCS 2015: the gain is a quadratic in x = p - b, x (x + 1) = a / gain.
        """
        spare = (math.sqrt(1 + 4 * self.a_ms / gain_ms) - 1) / 2
        guess = max(self.smallest_stable(), math.ceil(min(spare, LARGEST) + self.b_replicas))
        return _settled(guess, self.smallest_stable(), lambda p: p > LARGEST or self.gain_ms(p) <= gain_ms)

    def smallest_stable(self) -> int:
        """The fewest replicas that are not busy all the time."""
        return math.floor(self.b_replicas) + 1

    def replicas_for_utilization(self, utilization: float) -> int:
        """The fewest replicas whose utilization b / p is at most `utilization` (thesis, section 4.6.4)."""
        guess = max(1, math.ceil(self.b_replicas / utilization))
        return _settled(guess, 1, lambda p: self.b_replicas <= utilization * p * (1 + 1e-12))


def fit_queue_wait(
    *,
    service_ms: float,
    interarrival_ms: float,
    service_cv: float,
    interarrival_cv: float,
    queue_wait_ms: float,
    replicas: int,
    limits: FitLimits | None = None,
) -> QueueWait:
    """The model of a task that is no bottleneck, from its measurements with `replicas` replicas.

    Where Kingman predicts no wait at all (no load, or nothing varies) there is nothing to fit, and e is 1.
    """
    b_replicas = service_ms / interarrival_ms * replicas
    variability = (interarrival_cv * interarrival_cv + service_cv * service_cv) / 2
    kingman = QueueWait(service_ms * b_replicas * variability, b_replicas)
    expected_ms = kingman.wait_ms(replicas)
    fit = 1.0
    if 0 < expected_ms < math.inf:
        fit = queue_wait_ms / expected_ms
    if limits is not None:
        fit = min(max(fit, limits.lowest), limits.highest)
    return QueueWait(fit * kingman.a_ms, b_replicas, fit)


def fixed_queue_wait(wait_ms: float) -> QueueWait:
    """A task that cannot be scaled, with one replica in the model: it waits as long as it does now."""
    return QueueWait(wait_ms, 0.0)


def _settled(guess: int, lowest: int, holds: Callable[[int], bool]) -> int:
    """The smallest p >= `lowest` that `holds`, a step or two from `guess`, which was rounded."""
    while not holds(guess):
        guess += 1
    while guess > lowest and holds(guess - 1):
        guess -= 1
    return guess
