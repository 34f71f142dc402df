"""How much luck an interval has, against what the formulas of waiting.py say.

    r = (measured - predicted mean) / predicted luck
    u^2 = (PRIOR + sum of KEPT^k r_k^2) / (PRIOR + sum of KEPT^k)        r_k: k intervals ago

u is what the predicted luck is multiplied by. If the formulas are right, it is 1. Service times with a long
tail, or items that come in bursts, make it more, and a flow with them gets as many replicas more as hold the
share that was stated, before it has missed anything.
"""

import math
from dataclasses import dataclass

_KEPT = 0.97
_PRIOR = 8.0
LARGEST = 3.0
"""Times the luck that was predicted: no interval says more than that."""
_LEAST, _MOST = 0.7, 2.0


@dataclass(frozen=True, slots=True)
class Luck:
    """Of a constraint: the sums."""

    squares: float = 0.0
    weight: float = 0.0

    @property
    def factor(self) -> float:
        """u."""
        factor = math.sqrt((_PRIOR + self.squares) / (_PRIOR + self.weight))
        return min(_MOST, max(_LEAST, factor))

    def then(self, measured_ms: float, predicted_ms: float, luck_ms: float) -> "Luck":
        """With one more interval; one that cannot be predicted, or has no luck, tells nothing."""
        if not 0.0 < luck_ms < math.inf:
            return self
        off = min(LARGEST, abs(measured_ms - predicted_ms) / luck_ms)
        return Luck(_KEPT * self.squares + off * off, _KEPT * self.weight + 1.0)
