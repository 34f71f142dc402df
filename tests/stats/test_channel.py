"""Channel latency and its parts."""

from hypothesis import given
from hypothesis import strategies as st

from penstock.stats.channel import ChannelTimes

MS = 1_000_000


def test_the_parts_of_an_items_way() -> None:
    times = ChannelTimes()
    times.entered(emitted_ns=0, shipped_ns=4 * MS, arrived_ns=5 * MS, entered_ns=8 * MS)
    taken = times.take()
    assert (taken.output_batch_ms.mean, taken.transport_ms.mean, taken.queue_wait_ms.mean) == (4.0, 1.0, 3.0)
    assert taken.latency_ms.mean == 8.0
    assert times.take().latency_ms.mean is None


def test_no_time_is_negative() -> None:
    times = ChannelTimes()
    times.entered(9, 9, 5, 5)
    taken = times.take()
    assert (taken.latency_ms.mean, taken.transport_ms.mean) == (0.0, 0.0)


@given(st.lists(st.tuples(*(st.integers(0, 10**9) for _ in range(4))), min_size=1, max_size=20))
def test_the_parts_add_up(items: list[tuple[int, int, int, int]]) -> None:
    times = ChannelTimes()
    for begin, *steps in items:
        shipped, arrived, entered = begin + steps[0], begin + sum(steps[:2]), begin + sum(steps)
        times.entered(begin, shipped, arrived, entered)
    taken = times.take()
    parts = taken.output_batch_ms.center + taken.transport_ms.center + taken.queue_wait_ms.center
    assert abs(taken.latency_ms.center - parts) < 1e-6
