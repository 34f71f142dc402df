"""When a flow is started again, and when it is given up."""

import pytest

from penstock.flow.errors import FlowError
from penstock.spark.restarts import Outage, Restarts


class Clock:
    def __init__(self) -> None:
        self.now_s = 0.0

    def __call__(self) -> float:
        return self.now_s


def test_waits_grow_and_end() -> None:
    restarts = Restarts(9, Clock())
    waits = []
    while (wait_s := restarts.wait_s()) is not None:
        waits.append(wait_s)
        restarts.tried()
    assert waits == [0.0, 0.5, 1.0, 2.0, 4.0, 8.0, 16.0, 30.0, 30.0]
    assert restarts.too_many() == "it was started again 9 times within 10 min, and is given up"


def test_what_is_long_ago_does_not_count() -> None:
    clock = Clock()
    restarts = Restarts(2, clock)
    restarts.tried()
    clock.now_s = 400.0
    restarts.tried()
    assert restarts.wait_s() is None
    clock.now_s = 601.0
    assert restarts.wait_s() == 0.5
    clock.now_s = 1001.0
    assert restarts.wait_s() == 0.0


def test_none_at_all() -> None:
    assert Restarts(0, Clock()).wait_s() is None
    with pytest.raises(FlowError, match="restarts=-1 is not a number of restarts"):
        Restarts(-1, Clock())


def test_outages_are_counted() -> None:
    restarts = Restarts(5, Clock())
    for end in (11.0, 12.5):
        restarts.over(Outage("lost", 10.0, end, 100))
    assert (restarts.count, restarts.down_s, restarts.replayed, len(restarts.outages)) == (2, 3.5, 200, 2)
