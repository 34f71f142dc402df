"""Pools follow the need: at once upwards, late downwards, and never beyond the slots."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

import penstock as ps
from penstock.control.pools import Pool, PoolKeeper, PoolPlan, grow, pools_of
from penstock.flow.layers import lay_out
from penstock.flow.parallelism import Parallelism

POOL = Pool("work", size=8, most=64)


def needs(**replicas: int) -> dict[str, int]:
    return replicas


def test_a_pool_that_is_large_enough_stays() -> None:
    plan = PoolKeeper(60).plan(0, [POOL], needs(work=8), spare=100)
    assert (plan.sizes, plan.granted) == ({}, {"work": 8})


@pytest.mark.parametrize(("need", "spare", "size"), [(9, 100, 16), (20, 100, 20), (9, 4, 12), (9, 1, 9)])
def test_a_pool_grows_to_twice_its_size_or_to_the_need(need: int, spare: int, size: int) -> None:
    plan = PoolKeeper(60).plan(0, [POOL], needs(work=need), spare)
    assert (plan.sizes, plan.granted) == ({"work": size}, {"work": need})


def test_without_slots_nothing_is_resized_and_the_pool_is_all_there_is() -> None:
    plan = PoolKeeper(60).plan(0, [POOL], needs(work=20), spare=0)
    assert (plan.sizes, plan.granted) == ({}, {"work": 8})


def test_idle_replicas_of_others_make_place() -> None:
    idle = Pool("idle", size=10, most=64)
    plan = PoolKeeper(60).plan(0, [POOL, idle], needs(work=12, idle=2), spare=1)
    assert plan.sizes == {"work": 12, "idle": 7}
    assert plan.granted == {"work": 12, "idle": 2}


def test_replicas_that_take_several_slots_are_counted_so() -> None:
    wide = Pool("wide", size=4, most=64, slots_each=3)
    assert PoolKeeper(60).plan(0, [wide], needs(wide=8), spare=7).granted == {"wide": 6}


def test_a_pool_shrinks_after_it_was_far_too_large_for_long() -> None:
    keeper, large = PoolKeeper(60), Pool("work", size=40, most=64)
    for now_s in range(0, 60, 5):
        assert keeper.plan(now_s, [large], needs(work=3), spare=0).sizes == {}
    assert keeper.plan(60, [large], needs(work=3), spare=0).sizes == {"work": 8}
    assert keeper.plan(65, [Pool("work", 8, 64)], needs(work=1), spare=0).sizes == {}


def test_what_was_asked_for_stays() -> None:
    keeper, large = PoolKeeper(60), Pool("work", size=40, most=64, least=16)
    assert keeper.plan(0, [large], needs(work=1), spare=0).sizes == {}
    assert keeper.plan(60, [large], needs(work=1), spare=0).sizes == {"work": 16}
    asked, keeper = Pool("work", size=40, most=64, least=40), PoolKeeper(60)
    assert all(not keeper.plan(now_s, [asked], needs(work=1), spare=0).sizes for now_s in range(0, 300, 5))


@pytest.mark.parametrize(
    ("parallelism", "least"),
    [(ps.elastic(1, 64, initial=20), 8), (ps.elastic(1, 64, pool=24), 24), (ps.elastic(1, 64, pool=2), 2)],
)
def test_that_is_the_pool_that_a_task_was_given(parallelism: Parallelism, least: int) -> None:
    flow = ps.Flow("sums")
    numbers = flow.source(ps.paced(lambda partition, index, seed: index, 10), name="numbers")
    numbers.map(abs, name="work", parallelism=parallelism).sink(print, name="out")
    (pool,) = pools_of(lay_out(flow.graph()))
    assert pool.least == least


def test_a_need_within_that_time_counts() -> None:
    keeper, large = PoolKeeper(60), Pool("work", size=40, most=64)
    for now_s in range(0, 100, 5):
        assert keeper.plan(now_s, [large], needs(work=12 if now_s == 40 else 1), spare=0).sizes == {}
    assert keeper.plan(101, [large], needs(work=1), spare=0).sizes == {"work": 8}


def test_a_pool_that_is_not_twice_too_large_stays() -> None:
    keeper, roomy = PoolKeeper(60), Pool("work", size=15, most=64)
    assert all(not keeper.plan(now_s, [roomy], needs(work=1), spare=0).sizes for now_s in range(0, 300, 5))


@st.composite
def situations(draw: st.DrawFn) -> tuple[list[Pool], dict[str, int], int]:
    pools = []
    for number in range(draw(st.integers(1, 4))):
        most = draw(st.integers(1, 30))
        size = draw(st.integers(1, most))
        pools.append(Pool(f"t{number}", size, most, draw(st.integers(1, 3))))
    wanted = {pool.task: draw(st.integers(1, pool.most)) for pool in pools}
    return pools, wanted, draw(st.integers(0, 40))


@given(situations())
def test_growth_stays_within_slots_bounds_and_needs(
    situation: tuple[list[Pool], dict[str, int], int],
) -> None:
    pools, wanted, spare = situation
    plan = grow(pools, wanted, spare)
    taken = 0
    for pool in pools:
        size = plan.sizes.get(pool.task, pool.size)
        assert 1 <= size <= pool.most
        assert plan.granted[pool.task] == min(wanted[pool.task], size)
        assert size >= min(pool.size, wanted[pool.task])
        taken += (size - pool.size) * pool.slots_each
    assert taken <= spare
    left = spare - taken
    for pool in pools:
        if plan.granted[pool.task] < wanted[pool.task]:
            assert left < pool.slots_each or not plan.sizes


@given(situations())
def test_with_slots_enough_everybody_gets_what_is_needed(
    situation: tuple[list[Pool], dict[str, int], int],
) -> None:
    pools, wanted, _ = situation
    assert grow(pools, wanted, 10_000).granted == wanted


def test_a_source_has_what_it_needs_and_nothing_ready() -> None:
    source = Pool("orders", size=2, most=8, spares=False)
    assert PoolKeeper(60).plan(0, [source], needs(orders=3), spare=9).sizes == {"orders": 3}
    assert PoolKeeper(60).plan(0, [source], needs(orders=1), spare=0).sizes == {"orders": 1}
    assert PoolKeeper(60).plan(0, [source], needs(orders=2), spare=9) == PoolPlan({}, {"orders": 2})
    short = PoolKeeper(60).plan(0, [source], needs(orders=6), spare=1)
    assert (short.sizes, short.granted) == ({"orders": 3}, {"orders": 3})


def test_a_source_that_shrinks_makes_place_and_one_that_grows_is_given_some() -> None:
    shrinks = Pool("orders", size=4, most=8, spares=False)
    plan = PoolKeeper(60).plan(0, [shrinks, POOL], needs(orders=1, work=10), spare=0)
    assert plan.sizes == {"orders": 1, "work": 11}
    grows = Pool("orders", size=1, most=8, spares=False)
    plan = PoolKeeper(60).plan(0, [grows, POOL], needs(orders=3, work=2), spare=0)
    assert plan.sizes == {"orders": 3, "work": 6}
    assert plan.granted == {"orders": 3, "work": 2}


def test_a_source_shrinks_also_where_another_pool_gets_nothing() -> None:
    source, twice = Pool("orders", size=2, most=8, spares=False), Pool("work", 8, 64, slots_each=3)
    plan = PoolKeeper(60).plan(0, [source, twice], needs(orders=1, work=9), spare=0)
    assert plan == PoolPlan({"orders": 1}, {"orders": 1, "work": 8})
