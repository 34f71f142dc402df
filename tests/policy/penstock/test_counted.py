"""Ratios over some intervals, and what begins them anew."""

import pytest
from msgspec.structs import replace

from penstock.policy.penstock.counted import Counted, Ratio, counted
from penstock.stats.snapshot import Snapshot
from tests.policy.penstock.flows import row


def test_a_ratio_is_of_sums_and_older_intervals_count_less() -> None:
    known = Ratio().then(10.0, 100.0, luck=1.0).then(30.0, 200.0, luck=1.0)
    assert known.value == pytest.approx((0.95 * 10 + 30) / (0.95 * 100 + 200))


def test_what_differs_by_more_than_luck_begins_anew() -> None:
    known = Ratio().then(10.0, 100.0, luck=0.0)
    assert known.then(40.0, 100.0, luck=0.1).value == 0.4
    assert known.then(11.0, 100.0, luck=0.1).value == pytest.approx(20.5 / 195)


def test_a_slow_change_that_no_interval_shows_is_believed_after_some() -> None:
    known = Ratio()
    for _ in range(40):
        known = known.then(10.0, 100.0, luck=0.02)
    values = []
    for _ in range(8):
        known = known.then(11.5, 100.0, luck=0.02)
        values.append(known.value or 0.0)
    assert values[1] < 0.103, "it may be luck"
    assert values[-1] > 0.110
    assert known.below_each == pytest.approx(100.0)


def test_costs_and_what_becomes_of_items_come_from_a_snapshot() -> None:
    seen = row(100, (20.0, 5.0))
    known = counted(Counted(), seen)
    assert known.service_s("t0") == pytest.approx(0.02)
    assert known.service_s("t1") == pytest.approx(0.005)
    assert known.ratio(seen, seen.stream("t0->t1")) == 1.0


def broadcast(items: float, replicas: int) -> Snapshot:
    """A row whose first task sends so much to each replica of the second."""
    seen = row(100, (20.0, 5.0), (4, replicas))
    streams = [
        replace(one, wiring="broadcast", emitted_total=items * replicas) if one.receiver == "t1" else one
        for one in seen.streams
    ]
    return replace(seen, streams=streams)


def test_a_broadcast_counts_once_and_more_replicas_get_more_of_it() -> None:
    seen = broadcast(20.0, 2)
    known = counted(Counted(), seen)
    assert known.ratio(seen, seen.stream("t0->t1")) == pytest.approx(2 * 20 / 500)
    more = broadcast(20.0, 8)
    assert counted(known, more).ratio(more, more.stream("t0->t1")) == pytest.approx(8 * 20 / 500)


def test_the_luck_of_a_broadcast_is_that_of_what_was_sent() -> None:
    """Of 20 that were sent in an interval 32 may be sent in the next, however many copies these are."""
    known = counted(Counted(), broadcast(20.0, 16))
    again = broadcast(32.0, 16)
    assert counted(known, again).becomes["t0->t1"].intervals > 1.0
    assert counted(known, broadcast(60.0, 16)).becomes["t0->t1"].intervals == 1.0


def test_what_is_missing_stays_as_it_was() -> None:
    known = counted(Counted(), row(100))
    again = counted(known, row(100, processed_total=None, useful_s=None, service_ms=None))
    assert again.service_s("t0") == known.service_s("t0")
    assert counted(Counted(), row(100, processed_total=None)).service_s("t0") is None


def test_arrivals_begin_anew_with_other_replicas_and_do_not_count_while_unsettled() -> None:
    known = counted(Counted(), row(100))
    assert known.arrival_cv2("t0") == 1.0
    assert counted(known, row(100, replicas=(5, 2), interarrival_cv=0.1)).arrival_cv2("t0") == pytest.approx(
        0.01
    )
    assert counted(known, row(100, interarrival_cv=3.0), unsettled=["t0"]).arrival_cv2("t0") == 1.0
    assert counted(known, row(100, interarrival_cv=3.0)).arrival_cv2("t0") == pytest.approx((0.8 + 9) / 1.8)
