"""Items on their way stay in order and complete."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from penstock.sim.parts import Emitted, Parts, concatenated, followed_by, leaving_by, merged


def emitted(seed: int, counts: list[int]) -> Emitted:
    rng = np.random.default_rng(seed)
    time = np.concatenate([np.sort(rng.random(count)) for count in counts] or [np.empty(0)])
    return Emitted(time, rng.random(time.size), np.array(counts, dtype=np.int64))


def by_replica(items: Emitted) -> list[list[tuple[float, float]]]:
    pairs = list(zip(items.time.tolist(), items.origin.tolist(), strict=True))
    ends = np.cumsum(items.counts).tolist()
    return [pairs[begin:end] for begin, end in zip([0, *ends], ends, strict=False)]


sizes = st.lists(st.tuples(st.integers(0, 6), st.integers(0, 6)), min_size=1, max_size=5)


@given(sizes, st.integers(0, 999), st.floats(0, 1))
def test_what_leaves_and_what_stays_is_everything_in_order(
    counts: list[tuple[int, int]], seed: int, horizon_s: float
) -> None:
    earlier = emitted(seed, [first for first, _ in counts])
    later = emitted(seed + 1, [second for _, second in counts])
    later = Emitted(later.time + 1.0, later.origin, later.counts)
    gone, rest = leaving_by(2.0 * horizon_s, earlier, later)
    assert (gone.time <= 2.0 * horizon_s).all()
    assert (rest.time > 2.0 * horizon_s).all()
    both = [a + b for a, b in zip(by_replica(gone), by_replica(rest), strict=True)]
    whole = [a + b for a, b in zip(by_replica(earlier), by_replica(later), strict=True)]
    assert both == whole == by_replica(followed_by(earlier, later))


@given(sizes, st.integers(0, 999))
def test_merged_items_are_in_order_of_time(counts: list[tuple[int, int]], seed: int) -> None:
    first = emitted(seed, [n for n, _ in counts])
    second = emitted(seed + 1, [n for _, n in counts])
    expected = [sorted(a + b) for a, b in zip(by_replica(first), by_replica(second), strict=True)]
    assert by_replica(merged(first, second)) == expected


@given(sizes, st.integers(0, 999), st.integers(1, 4))
def test_repeating_and_choosing_keep_to_the_replica(
    counts: list[tuple[int, int]], seed: int, replicas: int
) -> None:
    items = emitted(seed, [n for n, _ in counts])
    copies = np.random.default_rng(seed).integers(0, 3, items.time.size)
    expected = []
    position = 0
    for run in by_replica(items):
        expected.append([pair for pair in run for _ in range(copies[position + run.index(pair)])])
        position += len(run)
    assert by_replica(items.repeated(copies)) == expected
    mask = copies > 0
    assert items.only(mask).time.tolist() == items.time[mask].tolist()
    moved = items.reassigned(items.replicas() % replicas, replicas)
    assert moved.counts.sum() == items.time.size


def test_parts_keep_their_origins_when_put_together_or_compacted() -> None:
    one = np.array([1])
    first = Parts(
        one, one, np.array([0.1]), np.array([2]), one * 1.0, one > 0, one * 0, one * 2, np.arange(4.0)
    )
    second = Parts(
        one, one, np.array([0.2]), np.array([1]), one * 1.0, one > 0, one, one, np.array([8.0, 9.0])
    )
    both = concatenated([first, Parts.nothing(), second])
    assert both.items() == 3
    assert both.compact().origins.tolist() == [0.0, 2.0, 9.0]
    assert both.only(np.array([False, True])).compact().origins.tolist() == [9.0]
