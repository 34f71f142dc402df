"""Sums that do not depend on the order."""

import math
from fractions import Fraction

from hypothesis import given
from hypothesis import strategies as st

from penstock.stats.exact_sum import ExactSum, exact_sum

terms = st.lists(st.floats(-1e100, 1e100), max_size=20)


@given(terms)
def test_the_sum_is_exact(numbers: list[float]) -> None:
    total = exact_sum(numbers)
    assert sum(map(Fraction, total.parts)) == sum(map(Fraction, numbers))
    assert total.value == math.fsum(numbers)


@given(terms, terms, st.randoms(use_true_random=False))
def test_every_order_and_grouping_gives_the_same(
    left: list[float], right: list[float], random: object
) -> None:
    shuffled = left + right
    random.shuffle(shuffled)  # type: ignore[attr-defined]
    one_by_one = ExactSum()
    for number in shuffled:
        one_by_one = one_by_one.merged(exact_sum([number]))
    assert exact_sum(left).merged(exact_sum(right)) == one_by_one == exact_sum(shuffled)


def test_what_ordinary_addition_loses() -> None:
    assert exact_sum([1e16, 1.0, -1e16]).value == 1.0
    assert ExactSum().value == 0.0
