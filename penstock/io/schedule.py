"""When the items of an open-loop source are due: a rate over time, its integral, and the inverse of that.

The rate is constant on each segment, so the number of items due by t is piecewise linear,
    N(t) = B[i] + r[i] * (t - S[i])      on segment i, which starts at S[i] with B[i] items before it,
and item k is due at the inverse of it,
    T(k) = S[i] + (k - B[i]) / r[i]      with i the last segment that has B[i] <= k.
Nothing is drawn at random and nothing depends on how late the reader is: item k has one due time for ever.
"""

import math
from bisect import bisect_right
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import accumulate

from penstock.durations import Duration, seconds

NS_PER_S = 1_000_000_000


class ScheduleError(ValueError):
    """A rate, a segment or a trace is not usable; the message names it."""


@dataclass(frozen=True)
class Schedule:
    """Segments of constant rate, one after the other; after the last one it repeats or it ends."""

    spans_s: tuple[float, ...]
    rates_per_s: tuple[float, ...]
    repeats: bool = False

    def __post_init__(self) -> None:
        if not self.spans_s or len(self.spans_s) != len(self.rates_per_s):
            raise ScheduleError("a schedule needs at least one segment, and a rate for each")
        for index, (span_s, rate) in enumerate(zip(self.spans_s, self.rates_per_s, strict=True)):
            if math.isnan(span_s) or span_s <= 0:
                raise ScheduleError(
                    f"segment {index} of the schedule lasts {span_s!r} s; it must last longer than 0 s"
                )
            if not (math.isfinite(rate) and rate >= 0):
                raise ScheduleError(
                    f"segment {index} has the rate {rate!r}; a rate is a finite number >= 0 of items/s"
                )
        if any(map(math.isinf, self.spans_s[:-1])) or (self.repeats and math.isinf(self.spans_s[-1])):
            raise ScheduleError("only the last segment of a schedule that does not repeat may last for ever")
        if not any(self.rates_per_s):
            raise ScheduleError("all rates of the schedule are 0: no item would ever be due")

    @cached_property
    def starts_s(self) -> tuple[float, ...]:
        """S: when each segment begins; one more entry for the end of the last."""
        return tuple(accumulate(self.spans_s, initial=0.0))

    @cached_property
    def items_before(self) -> tuple[float, ...]:
        """B: items due before each segment; one more entry for the end of the last."""
        counts = (
            span * rate if rate else 0.0 for span, rate in zip(self.spans_s, self.rates_per_s, strict=True)
        )
        return tuple(accumulate(counts, initial=0.0))

    @property
    def total_items(self) -> int | None:
        """How many items there are in all; None when there is no end to them."""
        if self.repeats or math.isinf(self.items_before[-1]):
            return None
        return math.ceil(self.items_before[-1])

    def rate_at(self, time_s: float) -> float:
        """Items per second at a time; 0 after the end."""
        if self.repeats:
            time_s = math.fmod(time_s, self.starts_s[-1])
        if time_s >= self.starts_s[-1]:
            return 0.0
        return self.rates_per_s[bisect_right(self.starts_s, time_s) - 1]

    def items_by(self, time_s: float) -> float:
        """N(t): the integral of the rate from 0 to `time_s`; 0 before the start."""
        time_s = max(time_s, 0.0)
        rounds = math.floor(time_s / self.starts_s[-1]) if self.repeats else 0
        within_s = min(time_s - self._begin_s(rounds, 0), self.starts_s[-1])
        segment = min(bisect_right(self.starts_s, within_s) - 1, len(self.spans_s) - 1)
        rate = self.rates_per_s[segment]
        partial = rate * (within_s - self.starts_s[segment]) if rate else 0.0
        whole = rounds * self.items_before[-1] if rounds else 0.0
        return whole + self.items_before[segment] + partial

    def due_s(self, index: int) -> float:
        """T(k): when item `index` is due, in seconds from the start; infinite for an item that never is."""
        rounds, within = self._round_of(index)
        if within >= self.items_before[-1]:
            return math.inf
        segment = bisect_right(self.items_before, within) - 1
        return (
            self._begin_s(rounds, segment) + (within - self.items_before[segment]) / self.rates_per_s[segment]
        )

    def due_ns(self, first: int, stride: int, count: int) -> list[int]:
        """Due times of `count` items from `first` on, `stride` apart, each `round(T(k) * 1e9)`; all exist.

        Segment by segment, so that an item costs a little arithmetic instead of a search; the arithmetic is
        that of `due_s`, so that the due time of an item does not depend on the call that asks for it.
        """
        due: list[int] = []
        while len(due) < count:
            index = first + len(due) * stride
            due.append(round(self.due_s(index) * NS_PER_S))
            rounds, within = self._round_of(index)
            segment = bisect_right(self.items_before, within) - 1
            rate, before, until = self.rates_per_s[segment], *self.items_before[segment : segment + 2]
            begin_s = self._begin_s(rounds, segment)
            skipped = rounds * self.items_before[-1] if rounds else 0.0
            last = first + count * stride
            if not math.isinf(until):
                last = min(last, math.ceil(until + skipped))
            inside = range(index + stride, last, stride)
            while inside and inside[-1] - skipped >= until:
                inside = inside[:-1]
            due += [round((begin_s + (k - skipped - before) / rate) * NS_PER_S) for k in inside]
        return due

    def _begin_s(self, rounds: int, segment: int) -> float:
        return (rounds * self.starts_s[-1] if rounds else 0.0) + self.starts_s[segment]

    def _round_of(self, index: int) -> tuple[int, float]:
        """Which repetition an item falls into, and its index in it."""
        if not self.repeats:
            return 0, float(index)
        per_round = self.items_before[-1]
        rounds = math.floor(index / per_round)
        within = index - rounds * per_round
        # Rounding may put the first item of a repetition a hair before it or at the end of the last one.
        if within < 0:
            return rounds, 0.0
        return (rounds + 1, 0.0) if within >= per_round else (rounds, within)


def constant(rate_per_s: float) -> Schedule:
    """The same rate for ever."""
    return Schedule((math.inf,), (float(rate_per_s),))


def steps(segments: Iterable[tuple[Duration, float]]) -> Schedule:
    """`(how long, items/s)` one after the other; the source ends after the last.

    >>> steps([("30 s", 2000), ("1 min", 5000)]).total_items
    360000
    """
    chosen: Sequence[tuple[Duration, float]] = list(segments)
    return Schedule(tuple(seconds(span) for span, _ in chosen), tuple(float(rate) for _, rate in chosen))


def as_schedule(rate: "float | Schedule") -> Schedule:
    """A number is a constant rate."""
    return rate if isinstance(rate, Schedule) else constant(rate)
