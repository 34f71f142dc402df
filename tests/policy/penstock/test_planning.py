"""What is wanted: luck at the load that is expected, and what is left of it at one that comes seldom."""

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.policy.penstock.learning import after
from penstock.policy.penstock.memory import Memory
from penstock.policy.penstock.parameters import PenstockParameters
from penstock.policy.penstock.planning import sigmas, wanted
from penstock.policy.penstock.proved import Proved
from tests.policy.penstock.flows import row


def test_the_less_often_a_load_comes_the_less_luck_is_kept_for_it() -> None:
    assert sigmas(0.99, 1.0) == pytest.approx(2.326, abs=1e-3)
    assert sigmas(0.99, 0.1) == pytest.approx(1.282, abs=1e-3)
    assert sigmas(0.99, 0.01) == sigmas(0.99, 0.0) == 0.0


@given(st.floats(0.6, 0.999), st.floats(0.0, 1.0), st.floats(0.0, 1.0))
def test_more_share_and_more_often_never_mean_less_luck(share: float, one: float, other: float) -> None:
    seldom, often = sorted((one, other))
    assert 0.0 <= sigmas(share, seldom) <= sigmas(share, often)
    assert sigmas(share, often) <= sigmas((1.0 + share) / 2.0, often)


def test_a_load_that_these_replicas_have_borne_needs_no_more_of_them() -> None:
    """Items that come seldom share no envelopes and cost more, which says nothing about many of them."""
    memory, parameters = Memory(), PenstockParameters()
    many, few = (150.0, 20.0), (30.0, 60.0)
    loads = [few, few, few, *[many] * 14, *[few] * 70]
    for number, (rate, each_ms) in enumerate(loads):
        seen = row(rate, (each_ms, 5.0), luck=number * 1e-6)
        memory = after(seen, memory, parameters)
    found = wanted(seen, memory, parameters)
    assert found.plan["source"] > 140.0, "head-room for what came once"
    assert found.need.replicas["t0"] > 4, "by the model alone"
    assert not found.is_short
    assert wanted(seen, replace(memory, proved=Proved()), parameters).is_short
