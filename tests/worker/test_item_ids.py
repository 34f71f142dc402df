"""Ids of what a worker sends: derived, unique, and the same however the flow is declared or scaled."""

import struct
from collections import defaultdict
from collections.abc import Sequence
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from penstock.flow.graph import ITEM_ID, Stream, Wiring
from penstock.wire.envelope import decode
from penstock.wire.ids import ItemId, stream_code
from penstock.wire.routes import StreamRoute
from penstock.worker.outbox import Outbox, OutStream

Ids = dict[tuple[str, int], list[ItemId | None]]
"""Of each stream and receiving replica, in the order they were sent."""

WIRINGS: dict[str, Wiring] = {
    "a->b": "broadcast",
    "a->c": "round_robin",
    "a->d": "key",
    "a.late->e": "forward",
}
parents = st.lists(st.tuples(st.integers(0, 3), st.integers(0, 99)), unique=True, max_size=8)
scripts = st.lists(st.sampled_from(list(WIRINGS)), max_size=12)


def ids_of(
    parents: Sequence[ItemId | None],
    script: Sequence[str],
    *,
    declared: Sequence[str] = tuple(WIRINGS),
    width: int = 3,
    lifetime_ms: float = 0.0,
) -> Ids:
    """Of every parent send one item into each stream of the script; broadcasts are so wide."""
    found: Ids = defaultdict(list)

    def take(data: bytes) -> None:
        (target,) = struct.unpack_from("<i", data, 13)
        envelope = decode(data[18:])
        found[declared[envelope.stream], target] += envelope.ids or []

    outbox = Outbox(take, 0, with_ids=True)
    streams = {}
    for number, name in enumerate(declared):
        key = ITEM_ID if WIRINGS[name] == "key" else None
        spec = Stream(name, "a", "out", name[-1], WIRINGS[name], key=key, batch_lifetime_ms=lifetime_ms)
        streams[name] = OutStream(outbox, spec, number)
        pool = width if WIRINGS[name] == "broadcast" else 2
        streams[name].lay(StreamRoute(1, 0, pool, 0, local=False), pool)
    outbox.streams = list(streams.values())
    for parent in parents:
        outbox.begin_item(parent, None)
        for name in script:
            streams[name].put(name)
    outbox.flush()
    return found


def flat(found: Ids) -> list[Any]:
    return [one for ids in found.values() for one in ids]


@given(parents, scripts, st.sampled_from([0.0, 5.0]))
def test_ids_are_derived_unique_and_the_same_again(
    parents: list[tuple[int, int]], script: list[str], lifetime_ms: float
) -> None:
    found = ids_of(parents, script, lifetime_ms=lifetime_ms)
    every = flat(found)
    copies = len(script) + 2 * script.count("a->b")
    assert len({*every}) == len(every) == len(parents) * copies
    assert {one[:2] for one in every} == ({*parents} if script else set())
    assert found == ids_of(parents, script, lifetime_ms=lifetime_ms)


def test_an_id_says_where_an_item_comes_from() -> None:
    found = ids_of([(7, 1), (7, 2)], ["a->c", "a->b", "a->c", "a->c"], width=2)
    single, wide = stream_code("a->c"), stream_code("a->b")
    assert found == {
        ("a->c", 0): [(7, 1, single), (7, 1, single + 2), (7, 2, single + 1)],
        ("a->c", 1): [(7, 1, single + 1), (7, 2, single), (7, 2, single + 2)],
        ("a->b", 0): [(7, 1, wide, 0), (7, 2, wide, 0)],
        ("a->b", 1): [(7, 1, wide, 1), (7, 2, wide, 1)],
    }


@given(parents, scripts, st.permutations(list(WIRINGS)))
def test_the_order_in_which_streams_were_declared_does_not_matter(
    parents: list[tuple[int, int]], script: list[str], declared: list[str]
) -> None:
    assert ids_of(parents, script, declared=declared) == ids_of(parents, script)


@given(parents, scripts, st.integers(1, 6), st.integers(1, 6))
def test_the_width_of_a_broadcast_does_not_matter(
    parents: list[tuple[int, int]], script: list[str], width: int, other: int
) -> None:
    """A replica gets the same copies however many others do; what is sent after them is numbered alike."""
    found, again = ids_of(parents, script, width=width), ids_of(parents, script, width=other)
    for name in WIRINGS:
        for replica in range(min(width, other) if name == "a->b" else 2):
            assert found[name, replica] == again[name, replica]


@given(parents, scripts)
def test_streams_are_numbered_on_their_own(parents: list[tuple[int, int]], script: list[str]) -> None:
    found = ids_of(parents, script)
    for name in WIRINGS:
        alone = ids_of(parents, [one for one in script if one == name])
        assert {place: ids for place, ids in found.items() if place[0] == name} == alone


@given(scripts)
def test_what_stems_from_no_item_has_no_id(script: list[str]) -> None:
    assert {*flat(ids_of([None], script))} <= {None}
    assert flat(ids_of([None, (0, 1)], script)).count(None) == len(script) + 2 * script.count("a->b")
