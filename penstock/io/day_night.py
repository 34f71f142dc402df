"""A day/night curve with bursts: how load looks when people cause it."""

import math
from collections.abc import Iterable
from dataclasses import dataclass
from itertools import pairwise

from penstock.durations import Duration, seconds
from penstock.io.schedule import Schedule, ScheduleError


@dataclass(frozen=True, slots=True)
class Burst:
    """From `at` on, for the time of `lasts`, the rate is `factor` times what it would be; in every period."""

    at: Duration
    lasts: Duration
    factor: float


def day_night(
    low_per_s: float,
    high_per_s: float,
    period: Duration,
    bursts: Iterable[Burst] = (),
    resolution: int = 144,
) -> Schedule:
    """A cosine from `low_per_s` (at 0) to `high_per_s` (at half the period) and back, repeated for ever.

        r(t) = low + (high - low) / 2 * (1 - cos(w t)),  w = 2 pi / period

    The curve is cut into `resolution` segments, and at the edges of bursts; each gets the exact mean of r,
        mean of r on [a, b] = low + (high - low) / 2 * (1 - (sin(w b) - sin(w a)) / (w (b - a))),
    so that no item is lost or won by cutting.
    """
    period_s = seconds(period)
    if period_s <= 0 or resolution < 2 or not 0 <= low_per_s <= high_per_s:
        raise ScheduleError(
            f"day_night needs 0 <= low <= high, a period longer than 0 s and a resolution of at least 2, "
            f"not low={low_per_s!r}, high={high_per_s!r}, period={period!r}, resolution={resolution!r}"
        )
    windows = [_window(burst, period_s) for burst in bursts]
    edges = {period_s * n / resolution for n in range(resolution)} | {0.0, period_s}
    edges |= {edge for start, end, _ in windows for edge in (start, end)}
    ordered = sorted(edges)
    omega = 2 * math.pi / period_s
    spans, rates = [], []
    for begin, end in pairwise(ordered):
        wave = (math.sin(omega * end) - math.sin(omega * begin)) / (omega * (end - begin))
        rate = low_per_s + (high_per_s - low_per_s) / 2 * (1 - wave)
        for start, stop, factor in windows:
            if start <= begin < stop:
                rate *= factor
        spans.append(end - begin)
        rates.append(max(rate, 0.0))
    return Schedule(tuple(spans), tuple(rates), repeats=True)


def _window(burst: Burst, period_s: float) -> tuple[float, float, float]:
    start_s, end_s = seconds(burst.at), seconds(burst.at) + seconds(burst.lasts)
    if not (start_s < end_s <= period_s and math.isfinite(burst.factor) and burst.factor >= 0):
        raise ScheduleError(
            f"a burst must lie inside the period of {period_s:g} s and have a finite factor >= 0, "
            f"not {burst!r}"
        )
    return start_s, end_s, burst.factor
