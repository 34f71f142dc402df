"""A histogram of latencies with buckets of 1 % relative width: bounded memory for any number of items."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from penstock.sim.arrays import Floats

_GROWTH = math.log(1.01)
_SMALLEST_S = 1e-7
_BUCKETS = 2400


class Latencies:
    """Counts per bucket; bucket k holds latencies up to 0.1 us x 1.01^k."""

    def __init__(self) -> None:
        self._counts = np.zeros(_BUCKETS, dtype=np.int64)

    def add(self, latency_s: Floats) -> None:
        bucket = np.log(np.maximum(latency_s, _SMALLEST_S) / _SMALLEST_S)
        bucket /= _GROWTH
        index = np.minimum(bucket.astype(np.int64) + 1, _BUCKETS - 1)
        self._counts += np.bincount(index, minlength=_BUCKETS)

    def merge(self, other: Latencies) -> None:
        self._counts += other._counts

    @property
    def count(self) -> int:
        return int(self._counts.sum())

    def above(self, value_ms: float) -> int:
        """How many items took longer, within the width of a bucket."""
        bucket = math.log(max(value_ms * 1e-3, _SMALLEST_S) / _SMALLEST_S) / _GROWTH
        return int(self._counts[math.floor(bucket + 0.5) + 1 :].sum())

    def quantile_ms(self, share: float) -> float | None:
        """The latency that `share` of the items do not exceed."""
        if self.count == 0:
            return None
        rank = share * self.count
        bucket = int(np.searchsorted(np.cumsum(self._counts), rank))
        return _SMALLEST_S * math.exp((bucket - 0.5) * _GROWTH) * 1000.0
