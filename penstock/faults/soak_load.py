"""The load of a soak: a week of a real trace in the time that it takes, or a made-up day and night."""

from pathlib import Path

from penstock.io.day_night import Burst, day_night
from penstock.io.schedule import Schedule
from penstock.io.trace import trace

MEAN_PER_S = 500.0
TRACE_SPAN_S = 7 * 86_400.0


def traced(path: Path, seconds: float) -> Schedule:
    """The first week of the trace, so fast that it ends with the soak, at 500 items/s on average."""
    as_recorded = trace(path, speed_up=TRACE_SPAN_S / seconds)
    mean_per_s = as_recorded.items_by(seconds) / seconds
    return trace(path, speed_up=TRACE_SPAN_S / seconds, scale=MEAN_PER_S / mean_per_s)


def made_up(seconds: float) -> Schedule:
    """Six days and nights with a burst in each, of the same mean."""
    period_s = seconds / 6
    burst = Burst(at=period_s * 0.6, lasts=period_s * 0.05, factor=1.5)
    return day_night(0.3 * MEAN_PER_S, 1.65 * MEAN_PER_S, period_s, [burst])
