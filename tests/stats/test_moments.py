"""Mean and variance: against the definition, and merged in any way."""

import math
import statistics

import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.stats.moments import Moments, OnlineMoments, moments_of_ns

values = st.lists(st.floats(-1e6, 1e6), max_size=30)


def one_by_one(numbers: list[float]) -> Moments:
    online = OnlineMoments()
    for number in numbers:
        online.add(number)
    return online.take()


def close(left: Moments, right: Moments) -> bool:
    return (
        left.count == right.count
        and math.isclose(left.center, right.center, rel_tol=1e-9, abs_tol=1e-6)
        and math.isclose(left.squares, right.squares, rel_tol=1e-9, abs_tol=1e-3)
    )


@given(values)
def test_the_definition(numbers: list[float]) -> None:
    moments = one_by_one(numbers)
    assert moments.count == len(numbers)
    assert (moments.mean is None) == (not numbers)
    assert (moments.variance is None) == (len(numbers) < 2)
    if moments.mean is not None:
        assert moments.mean == pytest.approx(statistics.fmean(numbers), abs=1e-6)
    if moments.variance is not None:
        assert moments.variance == pytest.approx(statistics.variance(numbers), rel=1e-6, abs=1e-3)


@given(st.lists(st.integers(-(10**6), 10**12), max_size=30))
def test_all_at_once_is_the_same_as_one_by_one(times_ns: list[int]) -> None:
    assert close(moments_of_ns(times_ns), one_by_one([max(0, time_ns) / 1e6 for time_ns in times_ns]))


def test_no_digits_are_lost_far_from_zero() -> None:
    moments = one_by_one([1e9 + 4, 1e9 + 7, 1e9 + 13, 1e9 + 16])
    assert moments.variance == pytest.approx(30.0)


@given(values, values)
def test_merging_is_pooling(left: list[float], right: list[float]) -> None:
    assert close(one_by_one(left).merged(one_by_one(right)), one_by_one(left + right))


@given(values, values, values)
def test_merging_is_associative_and_commutative(a: list[float], b: list[float], c: list[float]) -> None:
    one, two, three = one_by_one(a), one_by_one(b), one_by_one(c)
    assert close(one.merged(two).merged(three), one.merged(two.merged(three)))
    assert close(one.merged(two), two.merged(one))


@given(values, values)
def test_many_at_once_are_the_same_as_one_by_one(left: list[float], right: list[float]) -> None:
    online = OnlineMoments()
    for number in left:
        online.add(number)
    online.add_all(one_by_one(right))
    assert close(online.moments(), one_by_one(left + right))


def test_coefficient_of_variation() -> None:
    assert one_by_one([1.0, 3.0]).cv == pytest.approx(math.sqrt(2) / 2)
    assert one_by_one([1.0]).cv is None
    assert one_by_one([0.0, 0.0]).cv is None


def test_take_begins_anew() -> None:
    online = OnlineMoments()
    online.add(5.0)
    assert online.take() == Moments(1, 5.0, 0.0)
    assert online.take() == Moments()
