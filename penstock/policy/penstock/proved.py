"""What the replicas of now have borne: of the last intervals with them, what came and whether it was held.

A model that asks for more where nothing more comes, and what came was held as often as is asked for, has
been led by luck. Then there is time to wait and see, however long replicas take. If k of n intervals were
missed, a share of s is held all the same, unless so many would be missed less than once in 500 times,

    sum over i >= k of C(n, i) (1 - s)^i s^(n - i) <= CHANCE

At 0.99 that is two misses of six intervals, and three of 25. It is asked after each interval: of flows that
miss one of a hundred, once in fifty would find a reason in 5.6 % within ten minutes, once in 500 in 0.4 %.
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass

_REMEMBERED = 60
_ENOUGH = 3
_MANY = 10
_CHANCE = 0.002
_AS_MUCH = 1.05


@dataclass(frozen=True, slots=True)
class Proved:
    """Of each interval since replicas changed, the last ones: rates by source, and whether it was held."""

    intervals: tuple[tuple[Mapping[str, float], bool], ...] = ()

    def then(self, rates: Mapping[str, float], *, held: bool) -> "Proved":
        """With one more."""
        return Proved((*self.intervals, (dict(rates), held))[-_REMEMBERED:])

    def changed(self, before: Mapping[str, int], now: Mapping[str, int]) -> "Proved":
        """After a change: more replicas bear what fewer have, and what these have missed is not theirs."""
        if any(count < before.get(task, count) for task, count in now.items()):
            return Proved()
        return Proved(tuple(one for one in self.intervals if one[1]))

    def bears(self, planned: Mapping[str, float], share: float) -> bool:
        """Whether so much has come, and was held as often as is asked for."""
        borne = [rates for rates, held in self.intervals if held]
        if len(borne) < _ENOUGH or not self._may_be_luck(share):
            return False
        return all(
            rate <= _AS_MUCH * max(rates.get(source, 0.0) for rates in borne)
            for source, rate in planned.items()
        )

    @property
    def is_solid(self) -> bool:
        """Whether that is known of many intervals."""
        return len(self.intervals) >= _MANY

    def _may_be_luck(self, share: float) -> bool:
        whole, may_miss = len(self.intervals), 1.0 - share
        missed = sum(not held for _, held in self.intervals)
        fewer = math.fsum(
            math.comb(whole, count) * may_miss**count * share ** (whole - count) for count in range(missed)
        )
        return 1.0 - fewer > _CHANCE
