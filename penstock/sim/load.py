"""Loads: how many items per second are due when, and the due times themselves."""

from __future__ import annotations

import bisect
import math
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Sequence

    from penstock.sim.arrays import Floats
    from penstock.sim.distributions import Distribution


class LoadError(ValueError):
    """A load that cannot be followed."""


@dataclass(frozen=True, slots=True)
class Curve:
    """A piecewise constant function of time: `values[k]` from `from_s[k]` on; the last value stays."""

    from_s: tuple[float, ...]
    values: tuple[float, ...]
    _area: tuple[float, ...] = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        if not self.from_s or len(self.from_s) != len(self.values):
            raise LoadError("curve: give as many start times as values, at least one")
        if self.from_s[0] != 0.0 or any(b <= a for a, b in zip(self.from_s, self.from_s[1:], strict=False)):
            raise LoadError("curve: start times must begin with 0 and increase")
        if not all(math.isfinite(value) and value >= 0.0 for value in self.values):
            raise LoadError("curve: values must be finite and not negative")
        area = [0.0]
        for begin, end, value in zip(self.from_s, self.from_s[1:], self.values, strict=False):
            area.append(area[-1] + (end - begin) * value)
        object.__setattr__(self, "_area", tuple(area))

    @classmethod
    def constant(cls, value: float) -> Curve:
        return cls((0.0,), (value,))

    @classmethod
    def steps(cls, steps: Sequence[tuple[float, float]]) -> Curve:
        """From (duration in seconds, value) pairs."""
        begins, now = [], 0.0
        for duration_s, _ in steps:
            begins.append(now)
            now += duration_s
        return cls(tuple(begins), tuple(value for _, value in steps))

    def at(self, time_s: float) -> float:
        return self.values[self._piece(time_s)]

    def area_until(self, time_s: float) -> float:
        """Integral from 0: for a rate, the number of items due."""
        piece = self._piece(time_s)
        return self._area[piece] + (time_s - self.from_s[piece]) * self.values[piece]

    def next_change_after(self, time_s: float) -> float:
        piece = self._piece(time_s) + 1
        return self.from_s[piece] if piece < len(self.from_s) else math.inf

    def _piece(self, time_s: float) -> int:
        return bisect.bisect_right(self.from_s, time_s) - 1


class DueTimes:
    """The due times of a renewal process whose speed follows a rate curve.

    With unit-mean gaps x_1, x_2, ... item k is due when the integral of the rate reaches x_1 + ... + x_k; so
    exponential gaps give a Poisson process of that rate and deterministic gaps a paced one. Steps must not
    straddle a change of the rate.
    """

    def __init__(self, rate: Curve, gaps: Distribution, rng: np.random.Generator) -> None:
        self._rate = rate
        self._gaps = gaps
        self._rng = rng
        self._next = float(gaps.sample(rng, 1)[0])

    def until(self, begin_s: float, end_s: float) -> Floats:
        """Due times in [begin, end), increasing."""
        rate = self._rate.at(begin_s)
        area_begin = self._rate.area_until(begin_s)
        area_end = area_begin + rate * (end_s - begin_s)
        if rate == 0.0 or self._next >= area_end:
            return np.empty(0)
        drawn = [np.array([self._next])]
        reached = self._next
        while reached < area_end:
            expected = area_end - reached
            sums = self._gaps.sample(self._rng, int(expected + 4.0 * math.sqrt(expected)) + 8)
            sums[0] += reached
            np.cumsum(sums, out=sums)
            drawn.append(sums)
            reached = float(sums[-1])
        areas = np.concatenate(drawn)
        due = int(np.searchsorted(areas, area_end))
        self._next = float(areas[due])
        areas = areas[:due]
        areas -= area_begin
        areas /= rate
        areas += begin_s
        return areas
