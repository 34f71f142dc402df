"""Mean and variance, online and merged.

One value at a time by Welford's algorithm (Knuth, The Art of Computer Programming 2, 4.2.2), which does not
lose digits as a sum of squares does; M2 is the sum of squared differences from the mean:

    mean' = mean + (x - mean) / n,    M2' = M2 + (x - mean) (x - mean')

Two sets together (pooled; Chan, Golub and LeVeque 1979), d the difference of their means:

    mean = mean_1 + d n_2 / n,    M2 = M2_1 + M2_2 + d^2 n_1 n_2 / n
"""

import math
from collections.abc import Sequence

import msgspec

NS_PER_MS = 1e6


class Moments(msgspec.Struct, frozen=True):
    """Count, mean and spread of a set of values; None where there are too few values to tell."""

    count: int = 0
    center: float = 0.0
    squares: float = 0.0

    @property
    def mean(self) -> float | None:
        """Known from one value on."""
        return self.center if self.count else None

    @property
    def variance(self) -> float | None:
        """Of the sample; known from two values on."""
        return self.squares / (self.count - 1) if self.count > 1 else None

    @property
    def cv(self) -> float | None:
        """Coefficient of variation, c_X = sqrt(Var X) / mean (thesis, appendix A)."""
        if self.variance is None or self.center <= 0:
            return None
        return math.sqrt(self.variance) / self.center

    def merged(self, other: "Moments") -> "Moments":
        """Both sets together."""
        count = self.count + other.count
        if not self.count or not other.count:
            return self if self.count else other
        difference = other.center - self.center
        center = self.center + difference * other.count / count
        squares = self.squares + other.squares + difference * difference * self.count * other.count / count
        return Moments(count, center, squares)


def moments_of_ns(times_ns: Sequence[int]) -> Moments:
    """Of many times at once, by the definition and in ms: a fraction of the cost of one by one.

    No time is negative: clocks that were set right may still be off by a little.
    """
    if not times_ns:
        return Moments()
    passed_ns = [time_ns if time_ns > 0 else 0 for time_ns in times_ns]
    center_ns = sum(passed_ns) / len(passed_ns)
    squares = sum([(apart_ns := time_ns - center_ns) * apart_ns for time_ns in passed_ns])
    return Moments(len(passed_ns), center_ns / NS_PER_MS, squares / NS_PER_MS**2)


class OnlineMoments:
    """Collects values one by one; `take` gives the moments since the last time and begins anew."""

    __slots__ = ("_center", "_count", "_squares")

    def __init__(self) -> None:
        self._count, self._center, self._squares = 0, 0.0, 0.0

    def add(self, value: float) -> None:
        """One more value."""
        self._count += 1
        before = value - self._center
        self._center += before / self._count
        self._squares += before * (value - self._center)

    def add_all(self, moments: Moments) -> None:
        """Many values at once, of which only the moments are known."""
        total = self.moments().merged(moments)
        self._count, self._center, self._squares = total.count, total.center, total.squares

    def moments(self) -> Moments:
        """What was collected so far."""
        return Moments(self._count, self._center, self._squares)

    def take(self) -> Moments:
        """What was collected since the last `take`."""
        taken = self.moments()
        self._count, self._center, self._squares = 0, 0.0, 0.0
        return taken
