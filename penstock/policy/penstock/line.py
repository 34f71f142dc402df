"""A load that rises or falls so slowly that luck hides it from one interval to the next.

The straight line through the last n intervals (least squares) for the largest n of 40, 20 and 10 that is one:
what is off it is luck, and its slope is not.

    variance of what is off < OFF s^2        s^2 = x / T, of Poisson arrivals at x items/s in T seconds
    |slope| > SURE sqrt(12 s^2 / n^3)

The level lags behind such a load by half of the intervals that it is the mean of; the line does not.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass

_LENGTHS = (40, 20, 10)
_OFF = 1.8
_SURE = 4.0


@dataclass(frozen=True, slots=True)
class Line:
    """Its value in the last interval, and its change from one to the next."""

    now: float
    slope: float

    def at(self, ahead: float) -> float:
        """So many intervals from now."""
        return max(0.0, self.now + ahead * self.slope)


def line(rates: Sequence[float], interval_s: float) -> Line | None:
    """None where there is none."""
    for length in _LENGTHS:
        if len(rates) >= length:
            found = _through(rates[-length:], interval_s)
            if found is not None:
                return found
    return None


def _through(rates: Sequence[float], interval_s: float) -> Line | None:
    count = len(rates)
    middle, mean = (count - 1) / 2.0, math.fsum(rates) / count
    spread = count * (count * count - 1) / 12.0
    slope = math.fsum((place - middle) * rate for place, rate in enumerate(rates)) / spread
    off = math.fsum((rate - mean - slope * (place - middle)) ** 2 for place, rate in enumerate(rates))
    luck2 = mean / interval_s
    if off > _OFF * (count - 2) * luck2 or slope * slope <= _SURE * _SURE * luck2 / spread:
        return None
    return Line(mean + slope * middle, slope)
