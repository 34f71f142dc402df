"""Bernoulli sampling: every candidate is taken with the same probability (thesis, section 4.4.1).

Instead of a random number for each candidate, one is drawn for each sample: how many candidates to pass over.
With u uniform in (0, 1] and floor(ln u / ln(1 - p)) passed over, each is still taken with probability p.
"""

import math
from collections.abc import Callable

MOST_PER_S = 100.0
"""More samples of one source in a second cost more than they tell."""


class Sampler:
    """Decides which candidates to measure. `uniform` gives random numbers in [0, 1), say `Random(7).random`.

    The first candidate is always taken, as in the public code of Nephele, so that a slow stream has a sample
    in every interval; call `restart` when an interval begins.
    """

    __slots__ = ("_left", "_log", "_probability", "_uniform")

    def __init__(self, probability: float, uniform: Callable[[], float]) -> None:
        self._uniform = uniform
        self.set_probability(probability)

    def set_probability(self, probability: float) -> None:
        """From now on take this share of the candidates."""
        if not 0 <= probability <= 1:
            raise ValueError(f"sampling: a probability is between 0 and 1, not {probability}")
        self._probability = probability
        self._log = math.log1p(-probability) if 0 < probability < 1 else 0.0
        self.restart()

    def restart(self) -> None:
        """The next candidate is taken, unless nothing is ever taken."""
        self._left = 0

    def take(self) -> bool:
        """Whether to measure this candidate."""
        if self._left:
            self._left -= 1
            return False
        if not self._probability:
            return False
        if self._log:
            self._left = int(math.log(1.0 - self._uniform()) / self._log)
        return True


def affordable(share: float, rate_per_s: float) -> float:
    """The share of the items of a source to sample, so that there are not too many at that rate.

    Who wants all of them gets all.
    """
    return share if share == 1 or share * rate_per_s <= MOST_PER_S else MOST_PER_S / rate_per_s
