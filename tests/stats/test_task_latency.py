"""Read-write latency, with times given by hand."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.stats.moments import NS_PER_MS, Moments, OnlineMoments
from penstock.stats.task_latency import ReadWrite

MS = int(NS_PER_MS)


def test_read_write_is_the_time_until_the_next_write() -> None:
    latency = ReadWrite()
    latency.read(0)
    latency.read(60 * MS)
    latency.written(100 * MS)
    latency.written(200 * MS)
    taken = latency.take()
    assert taken.count == 2
    assert taken.mean == pytest.approx(70.0)
    assert taken.variance == pytest.approx(1800.0)


def test_items_that_still_wait_count_in_the_next_interval() -> None:
    latency = ReadWrite()
    latency.read(0)
    assert latency.take() == Moments()
    latency.written(8 * MS)
    assert latency.take().mean == pytest.approx(8.0)


@given(st.lists(st.lists(st.integers(0, 10**9), max_size=8), max_size=8))
def test_read_write_equals_the_list_of_all_latencies(windows: list[list[int]]) -> None:
    """Each window reads at some times and writes at its end."""
    latency = ReadWrite()
    expected = OnlineMoments()
    base = 0
    for window in windows:
        reads = sorted(base + offset for offset in window)
        for read in reads:
            latency.read(read)
        base += 10**9
        latency.written(base)
        for read in reads:
            expected.add((base - read) / NS_PER_MS)
    taken, wanted = latency.take(), expected.take()
    assert taken.count == wanted.count
    assert taken.center == pytest.approx(wanted.center, abs=1e-6)
    assert taken.squares == pytest.approx(wanted.squares, rel=1e-6, abs=1e-6)
