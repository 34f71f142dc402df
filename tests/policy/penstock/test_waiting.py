"""How waits change with replicas."""

import math

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from penstock.policy.penstock.waiting import FIT_LIMITS, Arrivals, Fit, Wait, kingman_ms, learnt


def wait(
    rate_per_s: float = 100.0, arrivals: Arrivals | None = None, exponent: float = 0.0, copied: float = 0.0
) -> Wait:
    return Wait(20.0, 0.5, rate_per_s, arrivals, 1.0, 4, exponent, Fit(), 5.0, copied)


@settings(max_examples=40)
@given(
    st.floats(1, 1_000),
    st.integers(1, 60),
    st.floats(0, 1),
    st.integers(1, 20),
    st.floats(0, 30),
    st.floats(0, 1),
)
def test_one_more_replica_never_makes_it_longer(
    rate: float, replicas: int, dealt: float, senders: int, per_lifetime: float, copied: float
) -> None:
    model = wait(rate, Arrivals(1.0, 4, dealt, senders, per_lifetime), copied=copied)
    before, after = model.wait_ms(replicas)[0], model.wait_ms(replicas + 1)[0]
    assert after <= before * (1 + 1e-9)


def test_too_few_replicas_wait_for_ever() -> None:
    assert wait(200.0).wait_ms(4) == (math.inf, math.inf)
    assert wait(199.0).wait_ms(4)[0] > 1_000


def test_each_replica_gets_all_of_what_is_broadcast() -> None:
    """Of 2 busy ones of 4 a quarter is: with 8 there is as much of that for each, and half of the rest."""
    assert wait(100.0, copied=0.25).busy(8) == pytest.approx(1.5 + 2 * 0.5)


def test_it_is_the_m_m_1_queue_where_arrivals_are_poisson() -> None:
    assert kingman_ms(10.0, 0.5, 1.0, 1.0) == pytest.approx(10.0)
    assert kingman_ms(10.0, 0.5, 0.2, 1.0) < 0.6 * 10.0
    assert kingman_ms(10.0, 0.0, 1.0, 1.0) == 0.0


def test_of_one_sender_that_deals_in_turn_each_receiver_gets_every_pth() -> None:
    arrivals = Arrivals(1.0, 1, dealt=1.0, senders=1, per_lifetime=0.0)
    assert arrivals.cv2_with(5, 0.8) == pytest.approx(0.2)
    by_key = Arrivals(1.0, 1, dealt=0.0, senders=1, per_lifetime=0.0)
    assert by_key.cv2_with(5, 0.8) == pytest.approx(1.0)
    blurred = Arrivals(1.0, 1, dealt=1.0, senders=8, per_lifetime=0.0)
    assert 0.2 < blurred.cv2_with(5, 0.5) < 1.0


def test_items_that_come_together_vary_more() -> None:
    """Ten in an envelope with one replica, two with nine."""
    arrivals = Arrivals(19.0, 1, dealt=0.0, senders=1, per_lifetime=9.0)
    assert arrivals.envelope(1) == 10.0
    assert arrivals.cv2_with(1, 0.5) == pytest.approx(19.0)
    assert arrivals.cv2_with(9, 0.5) == pytest.approx(3.0)


def test_replicas_that_slow_each_other_down_are_busier() -> None:
    assert wait(exponent=0.5).busy(16) == pytest.approx(2 * wait().busy(16))


def test_what_was_measured_corrects_the_formula() -> None:
    fit = Fit()
    for _ in range(60):
        fit = learnt(fit, measured_ms=30.0, kingman=20.0, luck_ms=2.0)
    assert fit.fit == pytest.approx(1.5, rel=0.01)
    for _ in range(60):
        fit = learnt(fit, measured_ms=1_000.0, kingman=501.0, luck_ms=50.0)
    assert FIT_LIMITS[0] <= fit.fit <= FIT_LIMITS[1]


@given(st.floats(1.1, 3.0), st.floats(0.7, 10.0), st.floats(1.1, 3.0))
def test_the_more_luck_an_interval_has_the_less_it_says(off: float, luck: float, more: float) -> None:
    kingman = 20.0
    sure, unsure = (
        learnt(Fit(rests=(0.0,)), off * kingman, kingman, times * luck * kingman).fit for times in (1.0, more)
    )
    assert 1.0 <= unsure <= sure <= off * (1.0 + 1e-9)


@given(st.floats(0.0, 1_000.0), st.floats(0.1, 20.0))
def test_one_odd_interval_says_no_more_than_one_with_much_luck(odd: float, luck_ms: float) -> None:
    fit = Fit(rests=(0.0,))
    for _ in range(10):
        fit = learnt(fit, measured_ms=20.0, kingman=20.0, luck_ms=luck_ms)
    most = learnt(fit, measured_ms=20.0 + 3.0 * max(2.0, luck_ms), kingman=20.0, luck_ms=luck_ms)
    assert learnt(fit, 20.0 + odd, 20.0, luck_ms).fit <= most.fit * (1.0 + 1e-9)


@given(st.lists(st.floats(0.0, 500.0), min_size=1, max_size=60), st.floats(0.1, 50.0))
def test_the_way_is_never_longer_than_any_of_the_last_waits(waits: list[float], kingman: float) -> None:
    fit = Fit()
    for measured_ms in waits:
        fit = learnt(fit, measured_ms, kingman, luck_ms=1.0)
    assert 0.0 <= fit.way_ms <= min(waits[-10:])
    assert FIT_LIMITS[0] <= fit.fit <= FIT_LIMITS[1]


def test_a_wait_that_no_queue_explains_is_the_way() -> None:
    fit = learnt(Fit(), measured_ms=5.0, kingman=0.5, luck_ms=0.1)
    assert fit.way_ms == 4.5
    assert fit.fit == pytest.approx(1.0)


def test_long_items_are_luck_even_where_hardly_anything_waits() -> None:
    """Of ten items a second and replica, one in a hundred that takes a second is seen in the mean."""
    even, uneven = (Wait(20.0, cv2, 10.0, None, 1.0, 4, 0.0, Fit(), 5.0).wait_ms(4)[1] for cv2 in (0.0, 2.0))
    assert even < 0.4
    assert uneven > 20.0 * math.sqrt(2.0 / 50.0)
    many = Wait(20.0, 2.0, 1_000.0, None, 1.0, 400, 0.0, Fit(), 5.0).wait_ms(400)[1]
    assert many < 0.2 * uneven


def test_one_odd_interval_is_not_the_way() -> None:
    fit = learnt(Fit(), measured_ms=20.0, kingman=20.0, luck_ms=5.0)
    odd = learnt(fit, measured_ms=100.0, kingman=20.0, luck_ms=5.0)
    assert odd.way_ms == 0.0
    for _ in range(20):
        odd = learnt(odd, measured_ms=100.0, kingman=20.0, luck_ms=5.0)
    assert odd.way_ms == 80.0, "if it is so always, it is"


def test_the_luck_of_a_queue_is_that_of_m_m_1() -> None:
    """In units of service time, by Daley: rho (2 + 5 rho - 4 rho^2 + rho^3) / (1 - rho)^4 / n for n waits."""
    for rho in (0.3, 0.5, 0.7):
        rate = 50.0 * rho
        queue = Wait(20.0, 1.0, rate, None, 1.0, 1, 0.0, Fit(), 1_000.0)
        own2 = 20.0**2 / (rate * 1_000.0)
        exact2 = 20.0**2 * rho * (2 + 5 * rho - 4 * rho**2 + rho**3) / (1 - rho) ** 4 / (rate * 1_000.0)
        assert queue.wait_ms(1)[1] == pytest.approx(math.sqrt(exact2 + own2), rel=1e-6)


@settings(max_examples=40)
@given(st.floats(1, 1_000), st.integers(1, 60), st.floats(0, 3), st.floats(0.5, 60))
def test_one_more_replica_never_makes_luck_larger(
    rate: float, replicas: int, service_cv2: float, interval_s: float
) -> None:
    queue = Wait(20.0, service_cv2, rate, None, 1.0, 4, 0.0, Fit(), interval_s)
    assert queue.wait_ms(replicas + 1)[1] <= queue.wait_ms(replicas)[1] * (1 + 1e-9)
