"""What a replica can do with an item, and how that changes with the number of replicas.

    S(p) = S(p0) (p / p0)^g        0 <= g <= MOST

Replicas that share cores, caches or a database slow each other down. g is the slope of log S over log p in
what was seen, older points counting less. As long as few different p were seen, it is 0: linear.
"""

import math
from dataclasses import dataclass

MOST = 0.9
_FORGETS = 0.97
_SPREAD = 0.02
_BUSY = 0.05


@dataclass(frozen=True, slots=True)
class Scalability:
    """Sums over the points (log p, log S) seen."""

    weight: float = 0.0
    x: float = 0.0
    y: float = 0.0
    xx: float = 0.0
    xy: float = 0.0

    def seen(self, replicas: int, service_s: float, utilization: float | None) -> "Scalability":
        """With one more point; an idle task tells nothing."""
        if service_s <= 0.0 or (utilization is not None and utilization < _BUSY):
            return self
        x, y, keep = math.log(replicas), math.log(service_s), _FORGETS
        return Scalability(
            keep * self.weight + 1.0,
            keep * self.x + x,
            keep * self.y + y,
            keep * self.xx + x * x,
            keep * self.xy + x * y,
        )

    @property
    def exponent(self) -> float:
        """g."""
        if self.weight < 4.0:
            return 0.0
        mean_x, mean_y = self.x / self.weight, self.y / self.weight
        spread = self.xx / self.weight - mean_x * mean_x
        if spread < _SPREAD:
            return 0.0
        return min(MOST, max(0.0, (self.xy / self.weight - mean_x * mean_y) / spread))
