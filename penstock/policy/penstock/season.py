"""A load that comes again: what came a season ago, where that has been the better forecast for a whole one.

    x(t + a) is expected to be x(t + a - L)        L: the season, in intervals; a: intervals ahead

Every L is tried at each interval: what came against what came L before, judged as level and trend are
(forecast.py), where what may be luck is no loss. A season is an L whose losses over its last max(L, FEWEST)
intervals are at most BETTER of what level and trend lost in the same ones, but for one odd interval: so it
has to be better on all of a day, not on a part of it, and neither luck nor a few intervals that are alike by
chance are a season. Of those that are about as good, luck included, the shortest counts, for twice a season
is one, too.

It is used only while the last interval was like the one a season before: a day that is another is met with
level and trend. What can be a surprise then is what was one in the last season, judged the same way.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import accumulate

LONGEST = 180
"""Intervals; a quarter of an hour of 5 s."""
KNOWN = 2 * LONGEST
"""Intervals that are remembered for it."""
_SHORTEST = 4
_FEWEST = 20
_BETTER = 0.5
_ABOUT = 1.2

Loss = Callable[[float, float], float]
"""Of what came and what was expected."""
Sums = tuple[float, ...]


@dataclass(frozen=True, slots=True)
class Seasons:
    """By length, from the shortest on, what it lost in the intervals it is judged by: `lost` but for luck,
    `off` with it. `others` is what level and trend lost in each of the last intervals, the newest last."""

    lost: Sums = ()
    off: Sums = ()
    others: Sums = ()

    def then(self, rates: Sequence[float], other: float, lost: Loss, off: Loss) -> "Seasons":
        """With one more interval, the last of `rates`, in which level and trend lost so much."""
        return Seasons(
            _moved(self.lost, rates, lost), _moved(self.off, rates, off), (*self.others, other)[-LONGEST:]
        )

    def found(self, rates: Sequence[float], ahead: int) -> int | None:
        """L; None if there is no season, or its forecast does not reach so far ahead."""
        others = _but_one(self.others)
        off = {
            length: self.off[length - _SHORTEST] / _judged(length)
            for length, lost in enumerate(self.lost, start=_SHORTEST)
            if ahead <= length
            and _judged(length) < len(others)
            and _judged(length) + length < len(rates)
            and lost <= _BETTER * others[_judged(length)]
            and others[_judged(length)] > 0.0
        }
        least = min(off.values(), default=0.0)
        return next((length for length, share in off.items() if share <= _ABOUT * least), None)


def _but_one(losses: Sums) -> list[float]:
    """By how many of the last ones: their sum without the two neighbours that lost most.

    One odd interval is lost twice: when it comes, and after it, when its level was believed.
    """
    newest_first = losses[::-1]
    neighbours = (one + other for one, other in zip(newest_first, (0.0, *newest_first), strict=False))
    sums, most = accumulate(newest_first), accumulate(neighbours, max)
    return [0.0, *(whole - odd for whole, odd in zip(sums, most, strict=True))]


def _judged(length: int) -> int:
    """By so many intervals."""
    return max(length, _FEWEST)


def _moved(sums: Sums, rates: Sequence[float], loss: Loss) -> Sums:
    """The sums with the last interval, and without the one that falls out."""
    last = len(rates) - 1
    found = []
    for length in range(_SHORTEST, min(LONGEST, last) + 1):
        number, out = length - _SHORTEST, last - _judged(length)
        whole = (sums[number] if number < len(sums) else 0.0) + loss(rates[last], rates[last - length])
        found.append(max(0.0, whole - loss(rates[out], rates[out - length])) if out >= length else whole)
    return tuple(found)


def came_before(rates: Sequence[float], length: int, ahead: int) -> float:
    """x(t + a - L)."""
    return rates[len(rates) - 1 + ahead - length]


def pairs(rates: Sequence[float], length: int) -> list[tuple[float, float]]:
    """What came in the last season, each with what came one before."""
    return list(zip(rates[-length:], rates[-2 * length : -length], strict=True))
