"""Channel latency and its parts."""

from hypothesis import given
from hypothesis import strategies as st

from penstock.stats.channel import ChannelMoments, channel_moments

MS = 1_000_000


def test_the_parts_of_an_items_way() -> None:
    found = channel_moments([(0, 4 * MS, 5 * MS, 8 * MS)])
    assert (found.output_batch_ms.mean, found.transport_ms.mean, found.queue_wait_ms.mean) == (4.0, 1.0, 3.0)
    assert found.latency_ms.mean == 8.0


def test_nothing_came() -> None:
    assert channel_moments([]) == ChannelMoments()


def test_no_time_is_negative() -> None:
    found = channel_moments([(9, 9, 5, 5)])
    assert (found.latency_ms.mean, found.transport_ms.mean) == (0.0, 0.0)


@given(st.lists(st.tuples(*(st.integers(0, 10**9) for _ in range(4))), min_size=1, max_size=20))
def test_the_parts_add_up(items: list[tuple[int, int, int, int]]) -> None:
    found = channel_moments(
        (begin, begin + steps[0], begin + sum(steps[:2]), begin + sum(steps)) for begin, *steps in items
    )
    parts = found.output_batch_ms.center + found.transport_ms.center + found.queue_wait_ms.center
    assert abs(found.latency_ms.center - parts) < 1e-6
