"""A sum of floats that is the same in whatever order its terms are added and sums are merged.

Rounding makes ordinary addition depend on the order. Here the exact sum S is kept as the floats
s1 = round(S), s2 = round(S - s1), and so on until nothing is left: the same few floats for every order.
`math.fsum` rounds an exact sum once (Shewchuk 1997).
"""

import math
from collections.abc import Iterable

import msgspec


class ExactSum(msgspec.Struct, frozen=True, array_like=True):
    """An exact sum of finite floats."""

    parts: tuple[float, ...] = ()

    def merged(self, other: "ExactSum") -> "ExactSum":
        """The terms of both."""
        return exact_sum((*self.parts, *other.parts))

    @property
    def value(self) -> float:
        """The sum, as close as a float can be."""
        return self.parts[0] if self.parts else 0.0


def exact_sum(terms: Iterable[float]) -> ExactSum:
    """The exact sum of `terms`."""
    left = list(terms)
    parts = []
    while rounded := math.fsum(left):
        parts.append(rounded)
        left.append(-rounded)
    return ExactSum(tuple(parts))
