"""Groups and windows, against counting one item after the other."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.sim.aggregate import group_copies, meter_groups, next_tick, one_per_window, opens_window
from penstock.sim.meters import Moments
from penstock.sim.parts import Emitted

copies_by_replica = st.lists(st.lists(st.integers(0, 3), max_size=12), min_size=1, max_size=4)


@given(copies_by_replica, st.integers(1, 5), st.integers(0, 2**16))
def test_groups_complete_as_items_are_counted(copies: list[list[int]], group: int, seed: int) -> None:
    filled = np.random.default_rng(seed).integers(0, group, len(copies))
    expected = []
    after = []
    for level, items in zip(filled.tolist(), copies, strict=True):
        for copy in items:
            expected.append((level + copy) // group)
            level = (level + copy) % group
        after.append(level)
    counts = np.array([len(items) for items in copies], dtype=np.int64)
    flat = np.array([copy for items in copies for copy in items], dtype=np.int64)
    assert group_copies(flat, counts, filled, group).tolist() == expected
    assert filled.tolist() == after


def test_the_latency_of_a_group_is_that_of_all_its_items() -> None:
    read = np.array([0.0, 1.0, 2.0, 3.0, 10.0, 11.0])
    latency = Moments()
    completes = np.array([0, 1, 0, 1, 0, 0])
    meter_groups(read, read + 0.5, completes, np.array([4, 2]), 2, latency)
    assert latency.count == 4
    assert latency.mean == pytest.approx((1.5 + 0.5) / 2)


@given(st.lists(st.floats(0.0, 5.0), min_size=1, max_size=30), st.integers(1, 3), st.floats(0.05, 1.0))
def test_a_window_ends_after_its_items_and_not_later_than_its_length(
    times: list[float], replicas: int, every_s: float
) -> None:
    counts = np.zeros(replicas, dtype=np.int64)
    counts[-1] = len(times)
    ordered = np.sort(np.array(times))
    tick = next_tick(ordered, counts, every_s)
    assert (tick >= ordered - 1e-9).all()
    assert (tick <= ordered + every_s + 1e-9).all()
    last_tick = np.zeros(replicas) - 1.0
    opens = opens_window(tick, counts, last_tick)
    emitted = one_per_window(Emitted(tick, ordered, counts))
    assert opens.size == emitted.time.size == np.unique(tick).size
    assert emitted.origin.tolist() == ordered[opens].tolist()
    assert opens_window(tick, counts, last_tick).size == 0
