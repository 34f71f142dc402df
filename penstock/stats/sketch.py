"""A mergeable quantile sketch with a bounded relative error.

DDSketch (Masson, Rim and Lee, VLDB 2019): a value x > 0 falls into bucket ceil(log x / log gamma) with
gamma = (1 + a) / (1 - a); the middle 2 gamma^i / (gamma + 1) of bucket i is within a share a of every value
in it. Buckets only count, so two sketches merge, in any order, by adding, and a window is a difference of
two totals.
"""

from math import ceil, isfinite, log
from typing import Any

RELATIVE_ERROR = 0.01
_GAMMA = (1 + RELATIVE_ERROR) / (1 - RELATIVE_ERROR)
_SCALE = 1 / log(_GAMMA)
_SMALLEST = 1e-9


class Sketch:
    """Quantiles of non-negative values; count and mean are exact."""

    __slots__ = ("_buckets", "_zeros", "count", "total")

    def __init__(self) -> None:
        self.count = 0
        self.total = 0.0
        self._zeros = 0
        self._buckets: dict[int, int] = {}

    def add(self, value: float) -> None:
        """Note a value; what is below zero counts as zero (clocks may be off by a little)."""
        if not isfinite(value):
            raise ValueError(f"a sketch takes finite numbers, not {value}")
        self.count += 1
        if value <= _SMALLEST:
            self._zeros += 1
            return
        self.total += value
        index = ceil(log(value) * _SCALE)
        self._buckets[index] = self._buckets.get(index, 0) + 1

    @property
    def mean(self) -> float | None:
        """Mean of all values, None without any."""
        return self.total / self.count if self.count else None

    def quantile(self, share: float) -> float | None:
        """The value below which a share of all values lies, within the relative error; None without any."""
        if not 0.0 <= share <= 1.0:
            raise ValueError(f"a quantile is between 0 and 1, not {share}")
        if not self.count:
            return None
        rank = share * (self.count - 1)
        below = self._zeros
        if rank < below:
            return 0.0
        for index in sorted(self._buckets):
            below += self._buckets[index]
            if rank < below:
                return _middle(index)
        return None

    def above(self, value: float) -> int:
        """How many values are larger, within the relative error."""
        return sum(count for index, count in self._buckets.items() if _middle(index) > value)

    def merge(self, other: "Sketch") -> "Sketch":
        """Both together."""
        return self._combined(other, 1)

    def minus(self, earlier: "Sketch") -> "Sketch":
        """What came after `earlier`, a former state of the same sketch."""
        return self._combined(earlier, -1)

    def _combined(self, other: "Sketch", sign: int) -> "Sketch":
        result = Sketch()
        result.count = self.count + sign * other.count
        result.total = self.total + sign * other.total
        result._zeros = self._zeros + sign * other._zeros
        indices = self._buckets.keys() | other._buckets.keys()
        counts = {i: self._buckets.get(i, 0) + sign * other._buckets.get(i, 0) for i in indices}
        result._buckets = {index: count for index, count in counts.items() if count}
        return result

    def to_json(self) -> dict[str, Any]:
        """Plain values, for a report."""
        return {
            "count": self.count,
            "total": self.total,
            "zeros": self._zeros,
            "buckets": dict(self._buckets),
        }

    @classmethod
    def from_json(cls, data: dict[str, Any]) -> "Sketch":
        """The sketch that `to_json` described."""
        sketch = cls()
        sketch.count = data["count"]
        sketch.total = data["total"]
        sketch._zeros = data["zeros"]
        sketch._buckets = {int(index): count for index, count in data["buckets"].items()}
        return sketch


def _middle(index: int) -> float:
    return float(2 * _GAMMA**index / (_GAMMA + 1))
