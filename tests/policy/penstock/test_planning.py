"""What is wanted: luck at the load that is expected, and what is left of it at one that comes seldom."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.policy.penstock.planning import sigmas


def test_the_less_often_a_load_comes_the_less_luck_is_kept_for_it() -> None:
    assert sigmas(0.99, 1.0) == pytest.approx(2.326, abs=1e-3)
    assert sigmas(0.99, 0.1) == pytest.approx(1.282, abs=1e-3)
    assert sigmas(0.99, 0.01) == sigmas(0.99, 0.0) == 0.0


@given(st.floats(0.6, 0.999), st.floats(0.0, 1.0), st.floats(0.0, 1.0))
def test_more_share_and_more_often_never_mean_less_luck(share: float, one: float, other: float) -> None:
    seldom, often = sorted((one, other))
    assert 0.0 <= sigmas(share, seldom) <= sigmas(share, often)
    assert sigmas(share, often) <= sigmas((1.0 + share) / 2.0, often)
