"""What can change at once and what waits for a boundary, without any Spark."""

from typing import Any

import msgspec
import pytest

import penstock as ps
from penstock import state
from penstock.control.pools import Pool, pools_of
from penstock.flow.layers import Layout, lay_out
from penstock.spark.changes import Change, change, divisible, not_rescaled, rescaled, rescaling
from penstock.wire.divisions import Division, Span, Spans
from penstock.wire.orders import Rescale, Switches
from penstock.wire.routes import marked_streams, routes
from tests.spark.items import Item, numbered


def same(item: Item) -> Item:
    return item


def layout(*, by_key: bool = False) -> Layout:
    """numbers -> work (1..16, pool 8) =forward=> more -> out"""
    flow = ps.Flow("changed")
    source = flow.source(numbered(10), name="numbers")
    stream = source.by_key(lambda item: item.index) if by_key else source
    work = stream.map(same, name="work", parallelism=ps.elastic(1, 16, pool=8))
    more = work.forward().map(same, name="more", parallelism=ps.elastic(1, 16, pool=8))
    more.sink(lambda item: None, name="out")
    return lay_out(flow.graph())


def settings(placed: Layout) -> Switches:
    return Switches(
        routes=routes(placed),
        active={task.name: task.parallelism.initial for task in placed.graph.tasks},
        lifetime_ms={stream.name: stream.batch_lifetime_ms for stream in placed.graph.streams},
        sampling=0.1,
    )


def test_nothing_wanted_is_nothing_changed() -> None:
    placed = layout()
    planned = change(placed, settings(placed))
    assert (planned.at_once, planned.at_boundary) == (settings(placed), None)


def test_a_task_that_leaves_its_host_to_host_others_waits_for_a_boundary() -> None:
    flow = ps.Flow("pipe")
    stream: Any = flow.source(numbered(10), name="numbers")
    for name in "abcd":
        stream = stream.forward().map(same, name=name)
    stream.sink(lambda item: None, name="out")
    placed = lay_out(flow.graph())
    before = change(placed, settings(placed), chains=[["a", "b", "c"]]).at_once
    assert before.chains == [["a", "b", "c"]]
    for chains in ([["b", "c"]], [["b", "c", "d"]], [["c", "d"]], [["a", "b"], ["c", "d"]]):
        planned = change(placed, before, chains=chains)
        assert planned.at_once == before
        assert planned.at_boundary is not None
        assert (planned.at_boundary[0], planned.at_boundary[1].chains) == (placed, chains)
    for chains in ([], [["a", "b"]], [["a", "b", "c", "d"]]):
        planned = change(placed, before, chains=chains)
        assert (planned.at_boundary, planned.at_once.chains) == (None, chains)


def test_replicas_lifetimes_and_chains_change_together_and_at_once() -> None:
    placed = layout()
    planned = change(
        placed,
        settings(placed),
        active={"work": 5},
        lifetimes_ms={"numbers->work": 2.5},
        chains=[["work", "more"]],
    )
    assert planned.at_boundary is None
    now = planned.at_once
    assert now.active == {"numbers": 1, "work": 5, "more": 5, "out": 1}
    assert now.lifetime_ms["numbers->work"] == 2.5
    assert now.chains == [["work", "more"]]


def test_replicas_beyond_the_pool_come_as_far_as_it_goes_and_the_rest_at_the_boundary() -> None:
    placed = layout()
    planned = change(placed, settings(placed), active={"work": 12}, pools={"work": 16})
    assert planned.at_once.active["work"] == 8
    assert planned.at_boundary is not None
    moved, then = planned.at_boundary
    assert moved.unit_of("more").pool == 16
    assert then.active["work"] == then.active["more"] == 12
    assert then.routes == routes(moved)


def test_replicas_of_a_task_that_receives_by_key_wait_for_the_boundary() -> None:
    placed = layout(by_key=True)
    planned = change(placed, settings(placed), active={"more": 4}, lifetimes_ms={"more->out": 1.0})
    assert planned.at_once.active == settings(placed).active
    assert planned.at_once.lifetime_ms["more->out"] == 1.0
    assert planned.at_boundary is not None
    assert planned.at_boundary[1].active["work"] == 4
    assert planned.at_boundary[0] == placed


class OfKeys:
    seen = state.value(0)

    def process(self, item: Item, out: ps.Out[Item]) -> None:
        out(item)


class OfReplicas(OfKeys):
    taken = state.per_replica(0, merge=max)


class OfReplicasOnly:
    taken = state.per_replica(0, merge=max)

    def process(self, item: Item, out: ps.Out[Item]) -> None:
        out(item)


async def asked(item: Item) -> Item:
    return item


def in_lists(items: list[Item]) -> list[Item]:
    return items


def keyed(body: Any, replicas: int | None = None) -> Layout:
    """numbers =by key=> work (1..16, pool 8) =forward=> more -> out"""
    flow = ps.Flow("moved")
    stream = flow.source(numbered(10), name="numbers").by_key(lambda item: item.index)
    several = ps.elastic(1, 16, initial=2, pool=8) if replicas is None else replicas
    makes: dict[Any, Any] = {same: stream.map, asked: stream.map, in_lists: stream.map_batches}
    make = makes.get(body, stream.task)
    work = make(body, name="work", parallelism=several)
    work.forward().map(same, name="more", parallelism=several).sink(lambda item: None, name="out")
    return lay_out(flow.graph())


def by_marks(placed: Layout) -> Switches:
    return msgspec.structs.replace(settings(placed), marked=marked_streams(placed))


def test_keys_change_hands_at_a_mark_where_there_are_marks() -> None:
    placed = keyed(OfKeys)
    assert change(placed, settings(placed), active={"work": 4}).at_mark is None, "there are none"
    now = by_marks(placed)
    planned = change(placed, now, active={"more": 4}, lifetimes_ms={"more->out": 1.0})
    assert planned.at_boundary is None
    assert planned.at_once == msgspec.structs.replace(now, lifetime_ms=now.lifetime_ms | {"more->out": 1.0})
    assert planned.at_mark == msgspec.structs.replace(
        planned.at_once, active={"numbers": 1, "work": 4, "more": 4, "out": 1}
    )
    assert change(placed, now, active={"work": 2}).at_mark is None, "nothing changes"


@pytest.mark.parametrize("body", [OfReplicas, same, in_lists, asked])
def test_so_do_values_of_replicas_and_keys_without_state(body: Any) -> None:
    placed = keyed(body)
    planned = change(placed, by_marks(placed), active={"work": 4})
    assert planned.at_boundary is None
    assert planned.at_mark is not None
    assert planned.at_mark.active["work"] == 4
    assert change(placed, settings(placed), active={"work": 4}).at_boundary is not None, "there are none"


def test_values_of_replicas_without_keys_change_hands_at_marks_only() -> None:
    flow = ps.Flow("moved")
    source = flow.source(numbered(10), name="numbers")
    source.task(OfReplicasOnly, name="work", parallelism=ps.elastic(1, 4, pool=4)).sink(print, name="out")
    placed = lay_out(flow.graph())
    planned = change(placed, by_marks(placed), active={"work": 4})
    assert planned.at_once.active["work"] == 1
    assert planned.at_mark is not None


def test_another_pool_waits_for_a_boundary_and_so_do_its_replicas() -> None:
    placed = keyed(OfKeys)
    planned = change(placed, by_marks(placed), active={"work": 4}, pools={"work": 5})
    assert planned.at_mark is None
    assert planned.at_boundary is not None
    assert planned.at_boundary[1].active["work"] == 4


@pytest.mark.parametrize("count", [1, 6])
def test_until_the_mark_is_over_all_replicas_are_there(count: int) -> None:
    placed = keyed(OfKeys)
    now = by_marks(placed)
    then = change(placed, now, active={"work": count}).at_mark
    assert then is not None
    moving = rescaling(now, then, 7)
    assert moving.active["work"] == max(2, count)
    assert moving.rescales == {"work": Rescale(7, 2, count), "more": Rescale(7, 2, count)}
    assert [moving.replicas("work", epoch) for epoch in (6, 7, 8)] == [2, count, count]
    assert moving.replicas("out", 7) == 1
    assert rescaled(moving) == then
    assert not_rescaled(moving) == now


def table(*last: int) -> Spans:
    """Replica 0 has the groups up to the first of these, replica 1 those up to the second, and so on."""
    firsts = [0, *(one + 1 for one in last)]
    return tuple(Span(first, end, n) for n, (first, end) in enumerate(zip(firsts, last, strict=False)))


def test_a_table_gives_keys_to_others_at_a_mark_and_lasts_while_the_replicas_do() -> None:
    placed = keyed(OfKeys)
    now = by_marks(placed)
    assert divisible(placed, now) == ["work"]
    uneven = table(999, 4095)
    planned = change(placed, now, tables={"work": uneven})
    assert (planned.at_once, planned.at_boundary) == (now, None)
    then = planned.at_mark
    assert then is not None
    moving = rescaling(now, then, 7)
    assert moving.rescales == {"work": Rescale(7, 2, 2, None, uneven)}, "its twin keeps what it has"
    assert moving.division("work", 6) == Division(2)
    assert moving.division("work", 7) == Division(2, uneven)
    assert divisible(placed, moving) == [], "one change at a time"
    assert rescaled(moving) == then
    assert not_rescaled(moving) == now
    assert then.division("work", 0) == Division(2, uneven)
    assert change(placed, then, tables={"work": uneven}) == Change(then), "nothing changes"
    assert change(placed, then, lifetimes_ms={"more->out": 1.0}).at_once.tables == {"work": uneven}
    even = change(placed, then, tables={"work": table(2047, 4095)}).at_mark
    assert even == now
    fewer = change(placed, then, active={"work": 1}).at_mark
    assert fewer is not None
    assert (fewer.active["work"], fewer.tables) == (1, {}), "evenly, if nothing else is said"
    assert not_rescaled(rescaling(then, fewer, 9)) == then
    three = table(9, 19, 4095)
    more = change(placed, then, active={"work": 3}, tables={"work": three}).at_mark
    assert more is not None
    assert rescaled(rescaling(then, more, 9)).division("work", 9) == Division(3, three)
    wider = change(placed, then, pools={"work": 5}).at_boundary
    assert wider is not None
    assert wider[1].tables == {"work": uneven}, "a boundary leaves keys where they are"


def test_tables_are_refused_where_keys_cannot_move_or_have_no_owner() -> None:
    placed = keyed(OfKeys)
    with pytest.raises(ps.FlowError, match=r"task \"work\" cannot be given .*takes commits by marks"):
        change(placed, settings(placed), tables={"work": table(4095)})
    fixed = keyed(OfKeys, 2)
    assert divisible(fixed, by_marks(fixed)) == []
    with pytest.raises(ps.FlowError, match=r"task \"out\" cannot be given to other replicas"):
        change(placed, by_marks(placed), tables={"out": table(4095)})
    with pytest.raises(ps.FlowError, match=r"no table for the keys of task \"work\": 10 of 4096 groups"):
        change(placed, by_marks(placed), tables={"work": table(9)})


def test_a_pool_that_shrinks_takes_replicas_along() -> None:
    placed = layout()
    running = change(placed, settings(placed), active={"work": 6}).at_once
    planned = change(placed, running, pools={"work": 3})
    assert planned.at_once.active["work"] == 3
    assert planned.at_boundary is not None
    assert planned.at_boundary[1].active["more"] == 3


def split_source(replicas: Any) -> Layout:
    flow = ps.Flow("split")
    source = ps.paced(lambda partition, index, seed: index, 1, partitions=6)
    flow.source(source, name="numbers", replicas=replicas).sink(print, name="out")
    return lay_out(flow.graph())


def test_replicas_of_a_source_change_at_the_boundary_and_none_is_held_ready() -> None:
    placed = split_source(ps.elastic(1, 6, initial=2))
    assert placed.unit_of("numbers").pool == 2
    for wanted in ({"active": {"numbers": 4}}, {"pools": {"numbers": 4}}):
        planned = change(placed, settings(placed), **wanted)  # type: ignore[arg-type]
        assert planned.at_once.active["numbers"] == 2
        assert planned.at_boundary is not None
        moved, then = planned.at_boundary
        assert (moved.unit_of("numbers").pool, then.active["numbers"]) == (4, 4)
    planned = change(moved, then, active={"numbers": 1})
    assert planned.at_once.active["numbers"] == 4, "no split is left alone in the middle of a batch"
    assert planned.at_boundary is not None
    assert planned.at_boundary[0].slots == 2


def test_a_source_with_a_fixed_number_of_replicas_keeps_it() -> None:
    placed = split_source(3)
    assert change(placed, settings(placed), active={"numbers": 3}).at_boundary is None
    with pytest.raises(ps.FlowError, match=r"the source was declared with always 3 replicas; .*elastic"):
        change(placed, settings(placed), active={"numbers": 2})


def test_what_is_not_possible_is_refused() -> None:
    placed = layout()
    with pytest.raises(ps.FlowError, match=r"9 active replicas of task \"work\".*pool of 8.*set_pool"):
        change(placed, settings(placed), active={"work": 9})
    with pytest.raises(ps.FlowError, match='no stream "a->b"'):
        change(placed, settings(placed), lifetimes_ms={"a->b": 1.0})


def test_pools_are_shared_by_tasks_that_are_kept_abreast() -> None:
    assert pools_of(layout()) == [Pool("work", size=8, most=16, slots_each=1)]
