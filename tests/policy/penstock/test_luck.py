"""How much luck there is, against what the formulas say."""

import random

import pytest

from penstock.policy.penstock.luck import Luck


def after(spread: float, intervals: int = 200) -> Luck:
    drawn, luck = random.Random(1), Luck()
    for _ in range(intervals):
        luck = luck.then(100.0 + drawn.gauss(0.0, spread), 100.0, 10.0)
    return luck


def test_it_is_as_the_formulas_say_until_more_was_seen() -> None:
    assert Luck().factor == 1.0
    assert after(10.0).factor == pytest.approx(1.0, abs=0.15)


def test_what_varies_more_than_predicted_counts_for_more() -> None:
    assert after(15.0).factor > 1.3
    assert after(5.0).factor < 0.8
    assert 1.0 < Luck().then(1_000.0, 100.0, 10.0).factor < 1.5, "one interval alone does not decide"


def test_what_cannot_be_predicted_tells_nothing() -> None:
    assert Luck().then(100.0, float("inf"), float("inf")) == Luck()
    assert Luck().then(100.0, 50.0, 0.0) == Luck()
