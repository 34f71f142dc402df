"""Bernoulli sampling: every candidate is taken with the same probability (thesis, section 4.4.1).

Instead of a random number for each candidate, one is drawn for each sample: how many candidates to pass over.
With u uniform in (0, 1] and floor(ln u / ln(1 - p)) passed over, each is still taken with probability p.
"""

import math
from collections.abc import Callable

MOST_PER_S = 100.0
"""More samples of one source in a second cost more than they tell."""

ENOUGH_PER_S = 50.0
"""So many are taken even if they are more than the envelopes they travel in."""

_VERY_MANY = 1e18

FEW = 3
"""With so many expected, one interval in twenty would have none."""


class Sampler:
    """Decides which candidates to measure. `uniform` gives random numbers in [0, 1), say `Random(7).random`.

    The public code of Nephele always takes the first candidate of an interval, so that a slow stream has a
    sample in each. Where items are dealt in turn, that is the same receiver again and again; so it is done
    only where there are `FEW` samples in an interval. Call `begin_interval` when one begins.
    """

    __slots__ = ("_left", "_log", "_probability", "_uniform")

    def __init__(self, probability: float, uniform: Callable[[], float]) -> None:
        self._uniform = uniform
        self._probability = 0.0
        self._log = 0.0
        self._left = 0
        self.set_probability(probability)

    def set_probability(self, probability: float) -> None:
        """From now on take this share of the candidates; the first one if none was taken before."""
        if not 0 <= probability <= 1:
            raise ValueError(f"sampling: a probability is between 0 and 1, not {probability}")
        if probability == self._probability:
            return
        begins = not self._probability
        self._probability = probability
        self._log = math.log1p(-probability) if 0 < probability < 1 else 0.0
        self._left = 0 if begins else self._passed_over()

    def begin_interval(self, candidates: float) -> None:
        """The next candidate is taken if few are expected to be, of about so many in this interval."""
        if candidates * self._probability < FEW:
            self._left = 0

    def take(self) -> bool:
        """Whether to measure this candidate."""
        return bool(self.places(1))

    def places(self, candidates: int) -> list[int]:
        """Which of the next candidates to measure; the first of them is 0."""
        if not self._probability:
            return []
        taken = []
        place = self._left
        while place < candidates:
            taken.append(place)
            place += 1 + self._passed_over()
        self._left = place - candidates
        return taken

    def _passed_over(self) -> int:
        log = self._log  # another thread may change it
        return int(min(_VERY_MANY, math.log(1.0 - self._uniform()) / log)) if log else 0


def affordable(share: float, rate_per_s: float, envelopes_per_s: float) -> float:
    """The share of the items of a source to sample, so that there are not too many at that rate.

    Items of one envelope wait and travel together, so a second sample among them tells little more:

        samples/s <= envelopes/s, but never fewer than ENOUGH_PER_S nor more than MOST_PER_S

    Who wants all of them gets all.
    """
    most_per_s = min(MOST_PER_S, max(ENOUGH_PER_S, envelopes_per_s))
    return share if share == 1 or share * rate_per_s <= most_per_s else most_per_s / rate_per_s
