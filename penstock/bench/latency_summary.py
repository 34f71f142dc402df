"""The latency of one contestant in one turn."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy
from numpy.typing import NDArray

from penstock.bench.harness import median


@dataclass(frozen=True, slots=True)
class LatencySummary:
    """Milliseconds from due time to sink, after the warm-up was cut; and whether all items came."""

    items: int
    mean_ms: float
    p50_ms: float
    p95_ms: float
    p99_ms: float
    max_ms: float
    lost: int
    duplicated: int
    reordered: int
    source_lag_p99_ms: float | None

    @classmethod
    def of(
        cls,
        latency_ms: NDArray[numpy.float64],
        *,
        lost: int,
        duplicated: int,
        reordered: int = 0,
        source_lag_ms: NDArray[numpy.float64] | None = None,
    ) -> "LatencySummary | None":
        """None if nothing arrived."""
        if not len(latency_ms):
            return None
        p50, p95, p99, most = (float(value) for value in numpy.percentile(latency_ms, [50, 95, 99, 100]))
        lag = None if source_lag_ms is None else float(numpy.percentile(source_lag_ms, 99))
        mean = float(latency_ms.mean())
        return cls(len(latency_ms), mean, p50, p95, p99, most, lost, duplicated, reordered, lag)


def middle_mean_ms(turns: Sequence[LatencySummary | None]) -> float | None:
    """The median over the turns of their means."""
    return median([turn.mean_ms for turn in turns if turn is not None])
