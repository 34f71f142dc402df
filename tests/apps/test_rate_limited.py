"""Work of a fixed time: exact in the mean, whatever sleep does."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.apps.rate_limited import LONGEST_DEBT_S, RateLimit, RateLimited


class Clock:
    """Time that passes when somebody works or sleeps; sleeps end late."""

    def __init__(self, late_s: float = 0.0) -> None:
        self.now_s = 100.0
        self.slept: list[float] = []
        self._late_s = late_s

    def __call__(self) -> float:
        return self.now_s

    def sleep(self, for_s: float) -> None:
        self.slept.append(for_s)
        self.now_s += for_s + self._late_s


@given(st.floats(0.0, 0.0009), st.lists(st.tuples(st.floats(0, 0.0009), st.floats(0, 0.1)), min_size=1))
def test_the_mean_is_exact_at_every_load(late_s: float, items: list[tuple[float, float]]) -> None:
    clock = Clock(late_s)
    limit = RateLimit(1000, clock, clock.sleep)
    busy_s = 0.0
    for work_s, idle_s in items:
        begun_s = limit.begin()
        clock.now_s += work_s
        limit.end(begun_s)
        busy_s += clock.now_s - begun_s
        clock.now_s += idle_s
    assert busy_s == pytest.approx(len(items) * 0.001, abs=0.001)


def test_a_long_delay_is_not_made_up_for_in_full() -> None:
    clock = Clock()
    limit = RateLimit(100, clock, clock.sleep)
    clock.now_s += 5.0
    limit.end(clock.now_s - 5.0)
    for _ in range(3):
        limit.end(limit.begin())
    assert sum(clock.slept) == pytest.approx(3 * 0.01 - LONGEST_DEBT_S)


def test_without_a_limit_nobody_sleeps() -> None:
    clock = Clock()
    limit = RateLimit(None, clock, clock.sleep)
    limit.end(limit.begin())
    assert clock.slept == []


@pytest.mark.parametrize("rate", [0, -1.0, float("nan")])
def test_a_limit_is_above_zero(rate: float) -> None:
    with pytest.raises(ValueError, match="a rate limit must be above 0 items/s, not "):
        RateLimit(rate)


def test_a_limited_function_returns_what_it_returned() -> None:
    assert RateLimited(str.upper, 100_000)("gate") == "GATE"
