"""What the replicas of now have borne: of the last intervals with them, what came and whether it was held.

A model that asks for more where nothing more comes, and what came was held as often as is asked for, has
been led by luck. Then there is time to wait and see, however long replicas take. If k of n intervals were
missed, a share of s is held all the same, unless so many would be missed less than once in 500 times,

    sum over i >= k of C(n, i) (1 - s)^i s^(n - i) <= CHANCE

At 0.99 that is two misses of six intervals, and three of 25. It is asked after each interval: of flows that
miss one of a hundred, once in fifty would find a reason in 5.6 % within ten minutes, once in 500 in 0.4 %.

What was borne at the highest load is remembered by itself: as long as head-room is planned for that load, it
must not be forgotten because less has come for a while.
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass

MANY = 10
_REMEMBERED = 60
_ENOUGH = 3
_CHANCE = 0.002
_AS_MUCH = 1.05

Seen = tuple[tuple[Mapping[str, float], bool], ...]
"""Intervals: the rates by source, and whether it was held."""


@dataclass(frozen=True, slots=True)
class Proved:
    """Intervals since replicas changed: the last ones, and the last of those in which about the most came."""

    lately: Seen = ()
    highest: Seen = ()

    def then(self, rates: Mapping[str, float], *, held: bool) -> "Proved":
        """With one more."""
        one = (dict(rates), held)
        return Proved((*self.lately, one)[-_REMEMBERED:], _highest((*self.highest, one))[-_REMEMBERED:])

    def changed(self, before: Mapping[str, int], now: Mapping[str, int]) -> "Proved":
        """After a change: more replicas bear what fewer have, and what these have missed is not theirs."""
        if any(count < before.get(task, count) for task, count in now.items()):
            return Proved()
        return Proved(_held(self.lately), _held(self.highest))

    def borne(self, planned: Mapping[str, float], share: float) -> int:
        """How many intervals show that so much is held as often as is asked for; 0 if it is not known."""
        return max(len(seen) if _bears(seen, planned, share) else 0 for seen in (self.lately, self.highest))


def _held(seen: Seen) -> Seen:
    return tuple(one for one in seen if one[1])


def _highest(seen: Seen) -> Seen:
    most = max(sum(rates.values()) for rates, _ in seen)
    return tuple(one for one in seen if _AS_MUCH * sum(one[0].values()) >= most)


def _bears(seen: Seen, planned: Mapping[str, float], share: float) -> bool:
    borne = [rates for rates, _ in _held(seen)]
    if len(borne) < _ENOUGH or not _may_be_luck(len(seen) - len(borne), len(seen), share):
        return False
    return all(
        rate <= _AS_MUCH * max(rates.get(source, 0.0) for rates in borne) for source, rate in planned.items()
    )


def _may_be_luck(missed: int, whole: int, share: float) -> bool:
    fewer = math.fsum(
        math.comb(whole, count) * (1.0 - share) ** count * share ** (whole - count) for count in range(missed)
    )
    return 1.0 - fewer > _CHANCE
