"""Sets of ids: they say what a set says, in much less memory."""

import tracemalloc

from hypothesis import given
from hypothesis import strategies as st

from penstock.io.id_set import DIGEST_BYTES, IdSet, digest_of

IDS = st.lists(
    st.lists(st.integers(0, 2**64 - 1) | st.integers(0, 3), min_size=2, max_size=5).map(tuple), max_size=50
)


@given(kept=IDS, asked=IDS)
def test_it_holds_what_a_set_holds(kept: list[tuple[int, ...]], asked: list[tuple[int, ...]]) -> None:
    plain, small = set(kept), IdSet()
    for item_id in kept:
        if digest_of(item_id) not in small:
            small.add(digest_of(item_id))
    assert len(small) == len(plain)
    assert [digest_of(item_id) in small for item_id in asked] == [item_id in plain for item_id in asked]


def test_ids_that_look_alike_have_other_digests() -> None:
    alike = [(1, 23), (12, 3), (1, 2, 3), (123,), (1, 23, 0), (0, 1, 23), (2**64 - 1, 1), (2**63 - 1, 1)]
    assert len({digest_of(item_id) for item_id in alike}) == len(alike)
    assert {len(digest_of(item_id)) for item_id in alike} == {DIGEST_BYTES}


def test_an_id_takes_few_bytes() -> None:
    tracemalloc.start()
    ids = IdSet()
    for ordinal in range(300_000):
        ids.add(digest_of((2**47, ordinal, 2**63 + ordinal)))
    taken, _ = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert len(ids) == 300_000
    assert taken / len(ids) < 30
