"""Loads of every kind, drawn by a seed: shares of the peak, from 0 to 1, one for every `STEP_S` seconds."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np

from penstock.sim.load import Curve

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from penstock.sim.arrays import Floats

STEP_S = 2.5
LOWEST = 0.05


def constant(times: Floats, rng: np.random.Generator) -> Floats:
    """Nothing ever changes."""
    return np.full(times.size, rng.uniform(0.4, 1.0))


def steps(times: Floats, rng: np.random.Generator) -> Floats:
    """From one level to another, five times."""
    levels = rng.uniform(0.2, 1.0, 5)
    levels[rng.integers(5)] = 1.0
    return np.asarray(levels[np.minimum(4, (5.0 * times / _length(times)).astype(np.int64))])


def ramps(times: Floats, rng: np.random.Generator) -> Floats:
    """Straight lines from one level to the next."""
    levels = rng.uniform(0.1, 1.0, 5)
    levels[rng.integers(1, 4)] = 1.0
    return np.interp(times, np.linspace(0.0, _length(times), 5), levels)


def flash_crowd(times: Floats, rng: np.random.Generator) -> Floats:
    """Quiet, then within seconds three to six times as much, which goes slowly."""
    length = _length(times)
    begin, lasts = rng.uniform(0.3, 0.5) * length, rng.uniform(0.05, 0.15) * length
    quiet = 1.0 / rng.uniform(3.0, 6.0)
    after = np.maximum(0.0, times - begin - lasts)
    crowd = np.where(times < begin, 0.0, np.exp(-after / (0.1 * length)))
    return quiet + (1.0 - quiet) * crowd


def spikes(times: Floats, rng: np.random.Generator) -> Floats:
    """Shorter than anybody can react to."""
    level = np.full(times.size, rng.uniform(0.3, 0.45))
    for begin in rng.choice(times.size, max(2, times.size // 25), replace=False):
        level[begin : begin + int(rng.integers(1, 3))] = rng.uniform(0.7, 1.0)
    return level


def day_and_night(times: Floats, rng: np.random.Generator) -> Floats:
    """Three days."""
    low, phase = rng.uniform(0.1, 0.4), rng.uniform(0.0, 2.0 * math.pi)
    turn = np.sin(2.0 * math.pi * 3.0 * times / _length(times) + phase)
    return np.asarray(low + (1.0 - low) * 0.5 * (1.0 + turn))


def sawtooth(times: Floats, rng: np.random.Generator) -> Floats:
    """Slowly up, suddenly down, four times; or the other way round."""
    low = rng.uniform(0.1, 0.4)
    rising = np.mod(4.0 * times / _length(times) + rng.uniform(), 1.0)
    return np.asarray(low + (1.0 - low) * (rising if rng.random() < 0.5 else 1.0 - rising))


def noise(times: Floats, rng: np.random.Generator) -> Floats:
    """Around one level, by a fifth up and down, with a memory of some steps."""
    level, kept = np.zeros(times.size), rng.uniform(0.3, 0.9)
    for now in range(1, times.size):
        level[now] = kept * level[now - 1] + math.sqrt(1.0 - kept * kept) * rng.normal()
    return np.asarray(np.exp(0.2 * level))


KINDS: dict[str, Callable[[Floats, np.random.Generator], Floats]] = {
    "constant": constant,
    "steps": steps,
    "ramps": ramps,
    "flash crowd": flash_crowd,
    "spikes": spikes,
    "day and night": day_and_night,
    "sawtooth": sawtooth,
    "noise": noise,
}


def load_of_kind(kind: str, seconds: float, seed: int) -> Curve:
    """A load of that kind; its highest value is 1, but for `constant`."""
    times = np.arange(0.0, seconds, STEP_S)
    shares = KINDS[kind](times, np.random.default_rng([seed, len(kind), list(KINDS).index(kind)]))
    if kind != "constant":
        shares = shares / shares.max()
    return Curve(tuple(times.tolist()), tuple(np.clip(shares, LOWEST, 1.0).tolist()))


def load_of_trace(rates: Sequence[float], seconds: float, seed: int) -> Curve:
    """A part of a trace, each of its rows for one step, against the highest of that part."""
    wanted = math.ceil(seconds / STEP_S)
    begin = int(np.random.default_rng(seed).integers(max(1, len(rates) - wanted)))
    part = np.resize(np.asarray(rates[begin : begin + wanted]), wanted)
    shares = np.clip(part / max(float(part.max()), 1e-12), LOWEST, 1.0)
    return Curve(tuple((np.arange(wanted) * STEP_S).tolist()), tuple(shares.tolist()))


def _length(times: Floats) -> float:
    return float(times[-1]) + STEP_S
