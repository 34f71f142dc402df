"""Inter-arrival times of single items and of envelopes."""

from hypothesis import given
from hypothesis import strategies as st

from penstock.stats.arrivals import Arrivals
from penstock.stats.moments import Moments

MS = 1_000_000


def test_gaps_between_single_items() -> None:
    arrivals = Arrivals()
    for time in (0, 2, 6):
        arrivals.arrived(time * MS)
    assert arrivals.take() == Moments(2, 3.0, 2.0)


def test_items_of_one_envelope_come_together() -> None:
    arrivals = Arrivals()
    arrivals.arrived(0)
    arrivals.arrived(10 * MS, items=5)
    taken = arrivals.take()
    assert (taken.count, taken.mean) == (5, 2.0)


def test_the_gap_across_intervals_counts_in_the_later_one() -> None:
    arrivals = Arrivals()
    arrivals.arrived(0)
    assert arrivals.take().mean is None
    arrivals.arrived(7 * MS)
    assert arrivals.take().mean == 7.0


@given(st.lists(st.tuples(st.integers(1, 1000), st.integers(1, 50)), min_size=2, max_size=30))
def test_the_mean_gap_is_time_over_items(envelopes: list[tuple[int, int]]) -> None:
    arrivals = Arrivals()
    arrivals.arrived(0)
    now = items = 0
    for gap, count in envelopes:
        now += gap * MS
        items += count
        arrivals.arrived(now, items=count)
    taken = arrivals.take()
    assert taken.count == items
    assert abs(taken.center - now / MS / items) < 1e-6
