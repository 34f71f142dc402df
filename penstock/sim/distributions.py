"""Distributions of service and inter-arrival times; every one scales to any mean."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

import numpy as np

if TYPE_CHECKING:
    from penstock.sim.arrays import Floats


class DistributionError(ValueError):
    """A distribution was given parameters that no distribution of its kind has."""


class Distribution(Protocol):
    """Positive random numbers with mean one; `scv` is their squared coefficient of variation."""

    @property
    def scv(self) -> float: ...

    def sample(self, rng: np.random.Generator, count: int) -> Floats: ...


@dataclass(frozen=True, slots=True)
class Deterministic:
    """Always the mean."""

    @property
    def scv(self) -> float:
        return 0.0

    def sample(self, rng: np.random.Generator, count: int) -> Floats:  # noqa: ARG002
        return np.ones(count)


@dataclass(frozen=True, slots=True)
class Exponential:
    """Memoryless: Poisson arrivals, or the M of M/M/1."""

    @property
    def scv(self) -> float:
        return 1.0

    def sample(self, rng: np.random.Generator, count: int) -> Floats:
        return rng.standard_exponential(count)


@dataclass(frozen=True, slots=True)
class Gamma:
    """Gamma with coefficient of variation `cv`: shape 1 / cv^2."""

    cv: float

    def __post_init__(self) -> None:
        _require_positive("Gamma", "cv", self.cv)

    @property
    def scv(self) -> float:
        return self.cv * self.cv

    def sample(self, rng: np.random.Generator, count: int) -> Floats:
        shape = 1.0 / self.scv
        values = rng.standard_gamma(shape, count)
        values *= self.scv
        return values


@dataclass(frozen=True, slots=True)
class LogNormal:
    """Lognormal with coefficient of variation `cv`: sigma^2 = ln(1 + cv^2), mu = -sigma^2 / 2."""

    cv: float

    def __post_init__(self) -> None:
        _require_positive("LogNormal", "cv", self.cv)

    @property
    def scv(self) -> float:
        return self.cv * self.cv

    def sample(self, rng: np.random.Generator, count: int) -> Floats:
        variance = math.log1p(self.scv)
        values = rng.standard_normal(count)
        values *= math.sqrt(variance)
        values -= variance / 2.0
        np.exp(values, out=values)
        return values


@dataclass(frozen=True, slots=True)
class ShiftedExponential:
    """A fixed part and an exponential part; `cv`, at most 1, is the exponential's share of the mean."""

    cv: float

    def __post_init__(self) -> None:
        _require_positive("ShiftedExponential", "cv", self.cv)
        if self.cv > 1.0:
            raise DistributionError(f"ShiftedExponential: cv is {self.cv}; it can be at most 1")

    @property
    def scv(self) -> float:
        return self.cv * self.cv

    def sample(self, rng: np.random.Generator, count: int) -> Floats:
        values = rng.standard_exponential(count)
        values *= self.cv
        values += 1.0 - self.cv
        return values


@dataclass(frozen=True, slots=True)
class Empirical:
    """Drawn with replacement from measured values, scaled to mean one."""

    values: tuple[float, ...]

    def __post_init__(self) -> None:
        if not self.values:
            raise DistributionError("Empirical: values is empty; give at least one measured value")
        if not all(math.isfinite(value) and value >= 0.0 for value in self.values) or sum(self.values) <= 0.0:
            raise DistributionError("Empirical: values must be finite, not negative, and not all zero")

    @property
    def scv(self) -> float:
        values = np.asarray(self.values)
        return float(values.var() / values.mean() ** 2)

    def sample(self, rng: np.random.Generator, count: int) -> Floats:
        values = np.asarray(self.values)
        chosen: Floats = (values / values.mean())[rng.integers(0, values.size, count)]
        return chosen


def _require_positive(kind: str, name: str, value: float) -> None:
    if not (math.isfinite(value) and value > 0.0):
        raise DistributionError(f"{kind}: {name} is {value}; it must be a positive number")
