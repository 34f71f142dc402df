"""What a source will send when a change has taken effect: its level, its trend if it has one, its surprises.

The level x is the mean of the last intervals, of as many as may be one: wherever they are parted into j older
and k newer ones (k a power of two), the two means differ by no more than luck,

    |x_j - x_k| <= STEP sqrt(x / T (1 / j + 1 / k))        for Poisson arrivals at x items/s in T seconds

and where they do, only the newer ones count (adaptive windowing, Bifet and Gavalda). So a constant load is
averaged, a step is believed at once, and a slow change after some intervals. The trend is the median of the
slopes between any two of the last intervals (Theil and Sen), which a single odd one does not move; where they
may be one level there is none, for what luck makes of five intervals would be taken that far ahead. Where
there is none, a slow one may be seen in more of them (line.py). It is used only while it has been the better
forecast lately, so never on noise: both are judged by what came, over the same time ahead, where having
expected too little counts nine times as much as too much.

A surprise is what came over what was expected, if it was more than luck; a load that falls at once may rise
at once, so a fall counts as the rise that would undo it. The head-room is a quantile of the surprises of the
last minutes, and never above the most that was seen in them: a load at its peak needs no room for twice that.
A quantile above 1 (margin.py) is room for all that was ever seen.

A load that comes again is expected as it came before (season.py).
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from itertools import accumulate, pairwise
from statistics import median

from penstock.policy.penstock.line import Line, line
from penstock.policy.penstock.season import KNOWN, Seasons, came_before, pairs

LUCK = 3.0
_STEP = 4.0
REMEMBERED = 120
"""Intervals, of surprises and of the most that was seen; ten minutes of 5 s."""
_LEVEL_OF = 40
_TREND_OF = 5
_FORGETS = 0.85
_TOO_LITTLE = 9.0
_LARGEST = 10.0
_FURTHER = 1.5
_ONE_STEP = 0.7
_LIKE = 0.2
DRIFT = 1.0
"""Standard deviations of luck: a change as small as that goes unnoticed for a while, and is planned for."""


@dataclass(frozen=True, slots=True)
class History:
    """Rates of the past intervals, surprises, and how much each way to forecast was off lately."""

    rates: tuple[float, ...] = ()
    surprises: tuple[float, ...] = ()
    level_loss: float = 0.0
    trend_loss: float = 0.0
    seasons: Seasons = field(default_factory=Seasons)

    @property
    def has_trend(self) -> bool:
        """Whether the trend has been no worse a forecast."""
        return self.trend_loss <= self.level_loss


@dataclass(frozen=True, slots=True)
class Forecast:
    """What is expected, what that may be by luck, and what is planned for, with head-room.

    `surprising` is the share of intervals that were surprises: so often head-room is needed.
    """

    expected_per_s: float
    lucky_per_s: float
    planned_per_s: float
    trend: bool
    surprising: float
    season: int | None = None


def alike(rates: Sequence[float], interval_s: float) -> int:
    """How many of the last ones are one level."""
    sums = [0.0, *accumulate(reversed(rates[-_LEVEL_OF:]))]
    for whole in range(2, len(sums)):
        newer = 1
        while newer < whole:
            older, mean = whole - newer, sums[whole] / whole
            differ = (sums[whole] - sums[newer]) / older - sums[newer] / newer
            if differ * differ * older * newer * interval_s > _STEP * _STEP * mean * whole:
                return newer
            newer *= 2
    return len(sums) - 1


def level(rates: Sequence[float], interval_s: float) -> float:
    """The mean of those."""
    count = alike(rates, interval_s)
    return math.fsum(rates[-count:]) / count


def slope(rates: Sequence[float], interval_s: float) -> float:
    """Change in an interval; 0 while too few are known, and where it may be luck."""
    last = rates[-_TREND_OF:]
    if len(last) < 3 or alike(rates, interval_s) >= len(last):
        return 0.0
    slopes = [
        (last[later] - last[earlier]) / (later - earlier)
        for earlier in range(len(last))
        for later in range(earlier + 1, len(last))
    ]
    # The line goes on only if it was one: not with steps up and down, nor where one step is most of it.
    steps = [later - earlier for earlier, later in pairwise(last)]
    found = median(slopes)
    agree = sum(step * found > 0 for step in steps)
    jump = max(abs(step) for step in steps) > _ONE_STEP * abs(last[-1] - last[0])
    if jump or agree < len(steps) - 1 or is_luck(last[0], last[0] + found * len(steps), interval_s):
        return 0.0
    return found


def trend(rates: Sequence[float], interval_s: float, flat: float) -> Line:
    """From what is there now on; level where there is none."""
    steep = slope(rates, interval_s)
    slow = line(rates, interval_s) if steep == 0.0 else None
    return Line(flat, steep) if slow is None else slow


def learnt(history: History, rate_per_s: float, interval_s: float, ahead: int) -> History:
    """With one more interval, and what the forecasts of `ahead` intervals ago were worth."""
    rates = (*history.rates, rate_per_s)[-KNOWN - 1 :]
    history = replace(history, rates=rates)
    before = rates[:-ahead]
    if not before:
        return history
    flat = level(before, interval_s)
    rising = trend(before, interval_s, flat).at(ahead)
    chosen = rising if history.has_trend else flat

    def lost(came: float, expected: float) -> float:
        return 0.0 if is_luck(came, expected, interval_s) else _loss(came, expected)

    seasons = history.seasons.then(rates, lost(rate_per_s, chosen), lost, _loss)
    return replace(
        history,
        seasons=seasons,
        surprises=(*history.surprises, surprise(rate_per_s, chosen, interval_s))[-REMEMBERED:],
        level_loss=_FORGETS * history.level_loss + _loss(rate_per_s, flat),
        trend_loss=_FORGETS * history.trend_loss + _loss(rate_per_s, rising),
    )


def surprise(came: float, expected: float, interval_s: float) -> float:
    """1 for what is luck; the same for a fall as for the rise that would undo it.

    Of what came, one standard deviation is taken to be luck: that is planned for anyway.
    """
    if is_luck(came, expected, interval_s):
        return 1.0
    low, high = sorted((came, expected))
    high -= luck_per_s(came, expected, interval_s) / LUCK
    return _LARGEST if low * _LARGEST <= high else high / low


def luck_per_s(one: float, other: float, interval_s: float) -> float:
    """By how much two rates may differ and be one."""
    return LUCK * math.sqrt(max(0.0, one + other) / interval_s)


def is_luck(one: float, other: float, interval_s: float) -> bool:
    """Whether two rates may be one."""
    return abs(one - other) <= luck_per_s(one, other, interval_s)


def _loss(came: float, expected: float) -> float:
    return _TOO_LITTLE * (came - expected) if came > expected else expected - came


def forecast(
    history: History,
    interval_s: float,
    ahead: int,
    quantile: float | None,
    *,
    until: int | None = None,
    slow: bool = False,
    is_last: bool = False,
    may_repeat: bool = True,
) -> Forecast:
    """Of the most that comes between `ahead` and `until` intervals from now.

    Without a `quantile` there is no head-room. `slow`: a change may take longer than an interval.
    `is_last`: it is what came last. `may_repeat`: seasons count.
    """
    rates, surprises = history.rates, history.surprises
    season = _season(history, ahead) if may_repeat and not is_last else None
    rises = 0.0
    if season is not None:
        times = range(ahead, min(season, max(ahead, until or ahead)) + 1)
        expected = max(came_before(rates, season, time) for time in times)
        surprises = tuple(surprise(came, before, interval_s) for came, before in pairs(rates, season))
    else:
        flat = level(rates[-1:] if is_last else rates, interval_s)
        goes = trend(rates, interval_s, flat) if history.has_trend and not is_last else Line(flat, 0.0)
        rises = goes.slope
        expected = goes.at(max(ahead, until or ahead) if rises > 0.0 else ahead)
    lucky = planned = expected
    if quantile is not None:
        lucky = expected + DRIFT * math.sqrt(expected / interval_s)
        room = expected * _quantile(surprises, quantile) if quantile <= 1.0 else math.inf
        planned = max(lucky, min(room, _most(history, slow=slow or ahead > 1)))
    often = sum(one > 1.0 for one in surprises) / max(1, len(surprises))
    return Forecast(expected, lucky, planned, rises != 0.0, often, season)


def _season(history: History, ahead: int) -> int | None:
    """Its length, if there is one and the last interval was like the one a season before."""
    season = history.seasons.found(history.rates, ahead)
    if season is None:
        return None
    came, before = history.rates[-1], came_before(history.rates, season, 0)
    return season if abs(came - before) <= _LIKE * max(came, before) else None


def _most(history: History, *, slow: bool) -> float:
    """What head-room goes up to: the most that was seen.

    Where a change may take longer than an interval, and the newest is the most and a surprise, it may be on
    its way to more, and there is no time to wait and see.
    """
    seen = max(history.rates[-REMEMBERED:])
    if slow and history.rates[-1] == seen and history.surprises:
        return seen * min(history.surprises[-1], _FURTHER)
    return seen


def _quantile(values: Sequence[float], share: float) -> float:
    """The smallest that so many are not above; beyond all of them the largest, and 1 of none."""
    if not values:
        return 1.0
    ordered = sorted(values)
    return ordered[min(len(ordered) - 1, max(0, math.ceil(share * (len(ordered) + 1)) - 1))]
