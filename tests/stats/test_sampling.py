"""Sampling: the right share, spread as Bernoulli draws are."""

import itertools
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.stats.sampling import ENOUGH_PER_S, MOST_PER_S, Sampler, affordable


@given(st.floats(0.02, 0.98), st.integers(0, 2**32))
def test_the_share_is_the_probability(probability: float, seed: int) -> None:
    sampler = Sampler(probability, Random(seed).random)
    draws = 20_000
    taken = sum(sampler.take() for _ in range(draws))
    # six standard deviations of a binomial distribution
    assert abs(taken - probability * draws) < 6 * (draws * probability * (1 - probability)) ** 0.5 + 1


@given(st.floats(0, 1), st.lists(st.integers(0, 50), max_size=20))
def test_many_candidates_at_once_are_as_many_one_by_one(probability: float, chunks: list[int]) -> None:
    together, alone = (Sampler(probability, Random(3).random) for _ in range(2))
    for chunk in chunks:
        assert together.places(chunk) == [place for place in range(chunk) if alone.take()]


def test_whether_one_is_taken_says_nothing_about_the_next() -> None:
    sampler = Sampler(0.3, Random(5).random)
    draws = [sampler.take() for _ in range(60_000)]
    after_taken = [b for a, b in itertools.pairwise(draws) if a]
    assert sum(after_taken) / len(after_taken) == pytest.approx(0.3, abs=0.02)


@pytest.mark.parametrize(("probability", "expected"), [(0.0, 0), (1.0, 100)])
def test_nothing_and_everything(probability: float, expected: int) -> None:
    sampler = Sampler(probability, Random(1).random)
    assert sum(sampler.take() for _ in range(100)) == expected


def test_a_slow_stream_has_a_sample_in_every_interval() -> None:
    sampler = Sampler(1e-9, Random(1).random)
    taken = []
    for _ in range(3):
        sampler.begin_interval(candidates=2)
        taken += [sampler.take(), sampler.take()]
    assert taken == [True, False] * 3


def test_no_place_in_an_interval_is_preferred() -> None:
    """An interval of a hundred items that are dealt to five receivers begins with the same one each time."""
    sampler = Sampler(0.1, Random(3).random)
    samples = [0] * 5
    for interval in range(2000):
        sampler.set_probability(0.1 if interval % 2 else 0.09)
        sampler.begin_interval(candidates=100)
        for item in range(100):
            samples[item % 5] += sampler.take()
    assert max(samples) < 1.1 * min(samples)


def test_the_probability_can_change() -> None:
    sampler = Sampler(0.0, Random(1).random)
    assert not sampler.take()
    sampler.set_probability(1.0)
    assert sampler.take()


@pytest.mark.parametrize("probability", [-0.1, 1.1, float("nan")])
def test_a_bad_probability(probability: float) -> None:
    with pytest.raises(ValueError, match="sampling: a probability is between 0 and 1, not"):
        Sampler(probability, Random(1).random)


@given(st.floats(0, 1, exclude_max=True), st.floats(0, 1e9))
def test_the_share_is_kept_until_there_would_be_too_many(share: float, rate_per_s: float) -> None:
    taken = affordable(share, rate_per_s, envelopes_per_s=1e9)
    assert taken <= share
    assert taken * rate_per_s <= MOST_PER_S * 1.001
    assert taken == share or taken * rate_per_s >= MOST_PER_S * 0.999


def test_who_wants_all_gets_all() -> None:
    assert affordable(1.0, 1e9, envelopes_per_s=1.0) == 1.0


@pytest.mark.parametrize(
    ("envelopes_per_s", "samples_per_s"), [(0.0, ENOUGH_PER_S), (70.0, 70.0), (1000.0, MOST_PER_S)]
)
def test_one_sample_of_an_envelope_tells_nearly_all(envelopes_per_s: float, samples_per_s: float) -> None:
    assert 20_000 * affordable(0.1, 20_000, envelopes_per_s) == pytest.approx(samples_per_s)
