"""What the adaptive Storm of the MAPE paper measures besides rates: a baseline service time, and a queue.

Both follow its public code where the paper is silent: the baseline is the mean of the first twelve samples
without those further than a standard deviation from their mean; a queue that cannot be read is estimated from
what came in and what went out, forgiving 5 % of the latter so that errors do not add up.
"""

import math

SAMPLES = 12
FORGIVEN = 0.05


class Baseline:
    """The service time of a task when it was not overloaded; None until there are enough samples."""

    __slots__ = ("_service_ms", "_value_ms")

    def __init__(self) -> None:
        self._service_ms: list[float] = []
        self._value_ms: float | None = None

    def add(self, service_ms: float) -> None:
        """One sample, say the mean of an interval; those after the first twelve are not needed."""
        if self._value_ms is None:
            self._service_ms.append(service_ms)
            if len(self._service_ms) == SAMPLES:
                self._value_ms = _usual_mean(self._service_ms)

    @property
    def service_ms(self) -> float | None:
        """The baseline."""
        return self._value_ms


def estimated_queue(queue: int, arrived: int, executed: int) -> int:
    """How many items wait after an interval in which `arrived` came and `executed` went: never below zero."""
    return max(0, queue + arrived - executed - math.floor(FORGIVEN * executed))


def _usual_mean(values: list[float]) -> float:
    """The mean of the values within one standard deviation of the mean of all."""
    mean = math.fsum(values) / len(values)
    deviation = math.sqrt(math.fsum((value - mean) ** 2 for value in values) / len(values))
    usual = [value for value in values if abs(value - mean) <= deviation] or values
    return math.fsum(usual) / len(usual)
