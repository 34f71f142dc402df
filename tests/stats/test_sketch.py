"""Quantiles: within the relative error, and merged in any order the same."""

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.stats.sketch import RELATIVE_ERROR, Sketch

values = st.lists(st.floats(0, 1e9), min_size=1, max_size=200)


def sketch_of(numbers: list[float]) -> Sketch:
    sketch = Sketch()
    for number in numbers:
        sketch.add(number)
    return sketch


def quantiles(sketch: Sketch) -> list[float | None]:
    return [sketch.quantile(share) for share in (0.0, 0.5, 0.95, 0.99, 1.0)]


@given(values, st.floats(0, 1))
def test_a_quantile_is_within_the_relative_error(numbers: list[float], share: float) -> None:
    estimate = sketch_of(numbers).quantile(share)
    exact = sorted(numbers)[math.floor(share * (len(numbers) - 1))]
    assert estimate is not None
    assert abs(estimate - exact) <= RELATIVE_ERROR * exact * (1 + 1e-9) + 1e-9


@given(values, st.floats(1e-6, 1e9))
def test_those_above_are_counted_within_the_relative_error(numbers: list[float], bound: float) -> None:
    surely = sum(number > bound * (1 + 2.1 * RELATIVE_ERROR) for number in numbers)
    perhaps = sum(number > bound * (1 - 2.1 * RELATIVE_ERROR) for number in numbers)
    assert surely <= sketch_of(numbers).above(bound) <= perhaps


@given(values, values, values)
def test_merging_in_any_order_gives_the_same(a: list[float], b: list[float], c: list[float]) -> None:
    one, two, three = sketch_of(a), sketch_of(b), sketch_of(c)
    left, right = one.merge(two).merge(three), three.merge(one.merge(two))
    assert quantiles(left) == quantiles(right) == quantiles(sketch_of(a + b + c))
    assert left.count == right.count == len(a) + len(b) + len(c)


@given(values, values)
def test_a_window_is_a_difference(before: list[float], after: list[float]) -> None:
    total = sketch_of(before).merge(sketch_of(after))
    assert quantiles(total.minus(sketch_of(before))) == quantiles(sketch_of(after))


@given(values)
def test_a_report_gives_it_back(numbers: list[float]) -> None:
    sketch = sketch_of(numbers)
    again = Sketch.from_json(sketch.to_json())
    assert quantiles(again) == quantiles(sketch)
    assert again.mean == sketch.mean


def test_nothing_is_unknown() -> None:
    assert Sketch().quantile(0.5) is None
    assert Sketch().mean is None


def test_below_zero_counts_as_zero() -> None:
    sketch = sketch_of([-1.0, 0.0])
    assert (sketch.quantile(1.0), sketch.mean) == (0.0, 0.0)


@pytest.mark.parametrize("value", [math.nan, math.inf])
def test_what_is_no_number_is_refused(value: float) -> None:
    with pytest.raises(ValueError, match="a sketch takes finite numbers, not"):
        Sketch().add(value)


def test_a_quantile_out_of_range() -> None:
    with pytest.raises(ValueError, match="a quantile is between 0 and 1, not 95"):
        Sketch().quantile(95)
