"""What the driver adds to a snapshot."""

import os
from typing import TYPE_CHECKING, Any

import pytest

import penstock as ps
from penstock.flow.layers import Layout, lay_out
from penstock.observe.outside import Outside
from penstock.stats.observed import observed
from penstock.stats.sketch import Sketch
from penstock.stats.snapshot import Snapshot
from penstock.stats.summary import Summary

if TYPE_CHECKING:
    from collections.abc import Iterator

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


def test_the_percentile_is_that_of_the_interval() -> None:
    outside = Outside(None)
    first = complete(outside, {"out": sketch(100.0)})
    second = complete(outside, {"out": sketch(100.0, 5.0)})
    third = complete(outside, {"out": sketch(100.0, 5.0)})
    assert first.constraints[0].p95_ms == pytest.approx(100, rel=0.02)
    assert second.constraints[0].p95_ms == pytest.approx(5, rel=0.02)
    assert third.constraints[0].p95_ms is None


@pytest.mark.parametrize("sequence", [["work", "work->out"], ["numbers->work", "work"], ["work"]])
def test_only_constraints_from_source_to_sink_have_a_percentile(sequence: list[str]) -> None:
    assert complete(Outside(None), {"out": sketch(100.0)}, sequence).constraints[0].p95_ms is None


def test_cores_are_cpu_seconds_per_second() -> None:
    outside = Outside(ticking(10.0, 13.0, 12.0), clock=ticking(100.0, 102.0, 104.0))
    busy = complete(outside, {})
    assert (busy.cores_used, busy.cores_leased) == (1.5, os.cpu_count())
    assert complete(outside, {}).cores_used == 0.0  # a process went, and its time with it
    assert complete(Outside(None), {}).cores_used is None
