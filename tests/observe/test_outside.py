"""What the driver adds to a snapshot."""

import os
from typing import TYPE_CHECKING, Any

import pytest
from msgspec.structs import replace

import penstock as ps
from penstock.flow.layers import Layout, lay_out
from penstock.observe.outside import Outside
from penstock.stats.observed import observed
from penstock.stats.sketch import Sketch
from penstock.stats.snapshot import Snapshot
from penstock.stats.summary import Summary

if TYPE_CHECKING:
    from collections.abc import Iterator

NAME = "c1"
WHOLE = ["numbers->work", "work", "work->out"]


def layout(sequence: list[str] = WHOLE) -> Layout:
    flow = ps.Flow("sums")
    numbers = flow.source(ps.paced(lambda partition, index, seed: index, 10), name="numbers")
    numbers.map(abs, name="work", parallelism=ps.elastic(1, 8, pool=5)).sink(print, name="out")
    flow.constrain("20 ms", sequence)
    return lay_out(flow.graph())


def bare(placed: Layout) -> Snapshot:
    active = dict.fromkeys(("numbers", "work", "out"), 1)
    return observed(placed.graph, Summary(), interval_s=5, active=active, lifetimes_ms={})


def sketch(*values_ms: float) -> Sketch:
    made = Sketch()
    for value in values_ms:
        made.add(value)
    return made


def complete(outside: Outside, latency: dict[str, Sketch], sequence: list[str] = WHOLE) -> Snapshot:
    placed = layout(sequence)
    return outside.complete(bare(placed), placed, {"work": 7}, latency)


def ticking(*values: float) -> Any:
    left: Iterator[float] = iter(values)
    return lambda: next(left)


def test_pool_and_backlog() -> None:
    work = complete(Outside(None), {}).tasks["work"]
    assert (work.pool, work.backlog_total) == (5, 7)


def test_what_waits_of_a_stream_is_known_where_its_receiver_has_no_other() -> None:
    snapshot = complete(Outside(None), {})
    queue = snapshot.stream("numbers->work").queue
    assert queue is not None
    assert queue.items == 7
    assert snapshot.stream("work->out").queue is None, "nobody told of its backlog"


@pytest.mark.parametrize("sequence", [WHOLE, ["work", "work->out"], ["numbers->work", "work"], ["work"]])
def test_percentiles_are_of_the_items_that_left_a_sequence(sequence: list[str]) -> None:
    values = sketch(*[5.0] * 93, *[50.0] * 5, *[500.0] * 2)
    found = complete(Outside(None), {NAME: values}, sequence).constraints[0]
    assert found.p95_ms == pytest.approx(50, rel=0.02)
    assert found.p99_ms == pytest.approx(500, rel=0.02)


def test_items_over_the_bound_of_a_percentile_are_counted() -> None:
    values = {NAME: sketch(*[5.0] * 93, *[50.0] * 5, *[500.0] * 2)}
    placed = layout()
    (mean,) = bare(placed).constraints
    tail = replace(mean, statistic="p95", latency_ms=40.0)
    both = replace(bare(placed), constraints=[mean, tail])
    assert [one.late for one in Outside(None).complete(both, placed, {}, values).constraints] == [None, 7]


@pytest.mark.parametrize(
    ("count", "known"), [(19, (False, False)), (20, (True, False)), (99, (True, False)), (100, (True, True))]
)
def test_too_few_items_tell_nothing_of_a_tail(count: int, known: tuple[bool, bool]) -> None:
    found = complete(Outside(None), {NAME: sketch(*[5.0] * count)}).constraints[0]
    assert (found.p95_ms is not None, found.p99_ms is not None) == known
    assert found.samples == count


def test_where_no_item_was_followed_nothing_is_told() -> None:
    found = complete(Outside(None), {}).constraints[0]
    assert (found.p95_ms, found.p99_ms, found.samples) == (None, None, None)


def test_cores_are_cpu_seconds_per_second() -> None:
    outside = Outside(ticking(10.0, 13.0, 12.0), clock=ticking(100.0, 102.0, 104.0))
    busy = complete(outside, {})
    assert (busy.cores_used, busy.cores_leased) == (1.5, os.cpu_count())
    assert complete(outside, {}).cores_used == 0.0  # a process went, and its time with it
    assert complete(Outside(None), {}).cores_used is None
