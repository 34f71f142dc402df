"""True and observed rates."""

from hypothesis import given
from hypothesis import strategies as st

from penstock.stats.rates import InstanceRates


def rates(
    useful_s: float = 2.0, processed: int = 100, emitted: int = 50, window_s: float = 10.0
) -> InstanceRates:
    return InstanceRates(window_s=window_s, useful_s=useful_s, processed=processed, emitted=emitted)


def test_the_definitions() -> None:
    one = rates()
    assert one.true_processing_per_s == 50.0
    assert one.true_output_per_s == 25.0
    assert one.observed_processing_per_s == 10.0
    assert one.observed_output_per_s == 5.0
    assert one.selectivity == 0.5


def test_what_cannot_be_known_is_none() -> None:
    idle = rates(useful_s=0.0, processed=0, emitted=0)
    assert idle.true_processing_per_s is None
    assert idle.selectivity is None
    assert idle.observed_processing_per_s == 0.0
    assert rates(window_s=0.0).observed_output_per_s is None


@given(st.integers(0, 10**6), st.integers(0, 10**6), st.floats(0.1, 10), st.floats(0.1, 10))
def test_two_windows_weigh_by_their_time(first: int, second: int, one_s: float, two_s: float) -> None:
    both = rates(useful_s=one_s, processed=first).merged(rates(useful_s=two_s, processed=second))
    assert both.window_s == 20.0
    assert both.true_processing_per_s == (first + second) / (one_s + two_s)


@given(st.floats(0.001, 10), st.integers(1, 10**6))
def test_true_rates_are_never_below_observed_ones(useful_s: float, processed: int) -> None:
    one = rates(useful_s=useful_s, processed=processed)
    assert one.true_processing_per_s is not None
    assert one.observed_processing_per_s is not None
    assert one.true_processing_per_s >= one.observed_processing_per_s
