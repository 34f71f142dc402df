"""Margins that are learnt from the intervals that were not held, so that a stated share of them is.

A miss has one of three causes. What came was more than was planned for, and not by luck: then the head-room
was too small, and the quantile of surprises that it covers moves up. Or it was not more, nothing was on its
way and nothing left over: then the model was too hopeful, and waits count for more. Anything else teaches
nothing.

    a <- a + GAIN ((1 - share) - missed)        the surprises left uncovered (adaptive conformal inference)
    n <- max(0, n + missed - (1 - share))       misses beyond those that may be
    log m = STEP max(0, n - 1)                  what predicted waits are multiplied by

Both come to rest where the share that is missed is the one that may be. The first miss beyond them may be
luck: at a share of 0.99 it would take a hundred intervals to take back what it has cost. m is never below 1:
what the formula has too much of is taken away by its fit (waiting.py), and a margin that shrinks as long as
nothing is missed would change a flow again and again under a load that never does.
"""

import math
from dataclasses import dataclass, replace

_GAIN = 0.05
_STEP = 0.2
_MOST = 2.5
_LUCKY = 1.0


@dataclass(frozen=True, slots=True)
class Margin:
    """Of a constraint: `uncovered` is a, `too_many` is n."""

    uncovered: float
    too_many: float = 0.0

    @property
    def factor(self) -> float:
        """m."""
        return min(_MOST, math.exp(_STEP * max(0.0, self.too_many - _LUCKY)))

    @property
    def quantile(self) -> float:
        """Of surprises, that head-room covers."""
        return max(0.0, 1.0 - self.uncovered)


def first_margin(share: float) -> Margin:
    """Before anything was learnt."""
    return Margin(uncovered=1.0 - share)


def after_load(margin: Margin, share: float, *, missed: bool) -> Margin:
    """More came than was planned for, or not."""
    moved = margin.uncovered + _GAIN * ((1.0 - share) - missed)
    return replace(margin, uncovered=min(2.0 * (1.0 - share), max(-_GAIN, moved)))


def after_wait(margin: Margin, share: float, *, missed: bool) -> Margin:
    """What waited, waited longer than was to be, or not."""
    moved = margin.too_many + missed - (1.0 - share)
    return replace(margin, too_many=min(_LUCKY + math.log(_MOST) / _STEP, max(0.0, moved)))
