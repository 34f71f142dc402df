"""How many items each group of keys was sent."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.stats.key_load import SLICE, GroupTime, KeyLoad, merged_loads, merged_times
from penstock.wire.keys import KEY_GROUPS


def load_of(counts: dict[int, int], told: int = 64) -> KeyLoad:
    """As a sender tells it that knows so many groups by themselves."""
    slices = [0] * (KEY_GROUPS // SLICE)
    for group, count in counts.items():
        slices[group // SLICE] += count
    heaviest = sorted(counts, key=lambda group: (-counts[group], group))[:told]
    return KeyLoad({group: counts[group] for group in heaviest}, slices)


counted = st.dictionaries(st.integers(0, KEY_GROUPS - 1), st.integers(1, 1000), max_size=20)


@given(st.lists(counted, max_size=4), st.integers(0, KEY_GROUPS - 1), st.integers(0, 20))
def test_no_item_is_lost_however_loads_are_merged_and_spans_are_cut(
    counts: list[dict[int, int]], cut: int, told: int
) -> None:
    load = merged_loads(load_of(one, told) for one in counts)
    total = sum(sum(one.values()) for one in counts)
    assert load.total == total
    assert load.between(0, cut) + load.between(cut + 1, KEY_GROUPS - 1) == pytest.approx(total)


@given(counted, st.integers(0, KEY_GROUPS - 1), st.integers(0, KEY_GROUPS - 1))
def test_groups_that_are_all_known_are_summed_exactly(counts: dict[int, int], one: int, two: int) -> None:
    first, last = sorted((one, two))
    wanted = sum(count for group, count in counts.items() if first <= group <= last)
    assert load_of(counts).between(first, last) == pytest.approx(wanted)


def test_others_share_their_slice() -> None:
    load = load_of({0: 100, 1: 20, 2: 43}, told=1)
    assert load.groups == {0: 100}
    assert load.between(1, 10) == pytest.approx(10)
    assert load.between(0, 0) == 100
    assert load_of({5: 1, 3: 7, 4: 7}).heaviest(2) == [(3, 7), (4, 7)]


def test_times_add_up_by_group() -> None:
    found = merged_times({1: GroupTime(2, 5.0)}, {1: GroupTime(1, 1.0), 2: GroupTime(1, 3.0)})
    assert found == {1: GroupTime(3, 6.0), 2: GroupTime(1, 3.0)}
