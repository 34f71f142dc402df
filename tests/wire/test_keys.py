"""Keys: the same owner in every process and every run, and few that move in a rescale."""

import os
import subprocess
import sys
from collections import Counter
from collections.abc import Hashable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.wire.keys import KEY_GROUPS, key_group, owner

parts = st.text() | st.binary() | st.integers() | st.floats() | st.none() | st.booleans()
keys = st.recursive(parts, lambda inner: st.lists(inner, max_size=4).map(tuple), max_leaves=6)
replicas = st.integers(1, 300)

KNOWN: dict[Hashable, int] = {
    "penstock": 748,
    b"penstock": 748,
    7: 2407,
    -1: 3283,
    0.5: 1791,
    None: 0,
    (): 0,
    ("a", 1): 1583,
}


def test_groups_are_the_same_for_ever() -> None:
    """Keyed state is found again by these numbers: another hash would scatter it."""
    assert {key: key_group(key) for key in KNOWN} == KNOWN


def test_groups_are_the_same_in_another_process() -> None:
    program = f"from penstock.wire.keys import key_group; print([key_group(k) for k in {list(KNOWN)!r}])"
    said = subprocess.run(
        [sys.executable, "-c", program],
        capture_output=True,
        text=True,
        check=True,
        env={"PYTHONHASHSEED": "5", "PYTHONPATH": os.pathsep.join(sys.path)},
    )
    assert said.stdout.strip() == str(list(KNOWN.values()))


@given(keys)
def test_every_key_has_a_group(key: Hashable) -> None:
    assert 0 <= key_group(key) < KEY_GROUPS
    assert key_group(key) == key_group(key)


@given(st.integers(-(2**53), 2**53))
def test_equal_keys_share_a_group(number: int) -> None:
    assert key_group(number) == key_group(float(number))
    assert key_group((number, "x")) == key_group((float(number), "x"))
    assert key_group(True) == key_group(1)


def test_what_is_not_a_number_has_one_owner() -> None:
    assert len({key_group(float("nan")) for _ in range(5)}) == 1


@given(replicas)
def test_groups_are_dealt_evenly_in_ranges_to_all_replicas(count: int) -> None:
    owners = [owner(group, count) for group in range(KEY_GROUPS)]
    assert owners == sorted(owners)
    sizes = Counter(owners)
    assert sorted(sizes) == list(range(count))
    assert max(sizes.values()) - min(sizes.values()) <= 1


@given(replicas)
def test_a_replica_more_moves_at_most_half_of_the_groups(count: int) -> None:
    """Of its range [r/n, (r+1)/n) replica r hands on what lies beyond (r+1)/(n+1): in all, one half."""
    moved = sum(owner(group, count) != owner(group, count + 1) for group in range(KEY_GROUPS))
    assert moved <= KEY_GROUPS / 2 + count


@given(st.integers(2, 8))
def test_many_keys_spread_over_all_replicas(count: int) -> None:
    load = Counter(owner(key_group(f"user-{number}"), count) for number in range(4000))
    assert min(load.values()) > 0.7 * 4000 / count


@pytest.mark.parametrize("key", [object(), frozenset({1}), 1j, ("fine", object())])
def test_keys_without_a_stable_hash_are_refused(key: Hashable) -> None:
    with pytest.raises(
        TypeError, match=r"has no stable hash; use str, bytes, a number, None or a tuple of these$"
    ):
        key_group(key)
