"""Array types and the few index tricks that several kernels share."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
Bools = NDArray[np.bool_]


def starts_of(counts: Ints) -> Ints:
    """Index of the first element of each of consecutive runs of the given lengths."""
    starts = np.cumsum(counts)
    starts -= counts
    return starts


def run_positions(base: Ints, stride: Ints, size: Ints) -> Ints:
    """Positions base, base + stride, ... (size of them) of every run, one run after the other."""
    first = starts_of(size)
    total = int(size.sum())
    positions = np.arange(total, dtype=np.int64)
    if stride.size and stride.min() == stride.max():
        step = int(stride[0])
        positions *= step
        positions += np.repeat(base - first * step, size)
        return positions
    positions *= np.repeat(stride, size)
    positions += np.repeat(base - first * stride, size)
    return positions


def sums_of_runs(values: Floats | Ints, size: Ints) -> Floats:
    """Sum of each of consecutive runs; an empty run sums to zero."""
    total = np.zeros(size.size)
    filled = np.flatnonzero(size)
    if filled.size:
        total[filled] = np.add.reduceat(values, starts_of(size)[filled])
    return total


def fitted(values: Floats, length: int, filler: float = 0.0) -> Floats:
    """Cut or lengthened to `length`."""
    if values.size >= length:
        return values[:length].copy()
    return np.concatenate([values, np.full(length - values.size, filler)])
