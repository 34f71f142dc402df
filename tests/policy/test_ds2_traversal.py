"""One traversal equals the linear-algebra solution, and unknown stays unknown."""

import math

import msgspec
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.policy.ds2_rates import Knowledge
from penstock.policy.ds2_traversal import replicas, traverse
from penstock.stats.snapshot import Snapshot, StreamStats, TaskStats
from penstock.stats.snapshot_structs import Kind
from tests.policy.linear_flows import WORD_COUNT, LinearFlow, linear_flows, parallelisms


def solve(flow: LinearFlow) -> dict[str, float]:
    """x = A^T S x + rates: the rate out of each operator, by one linear system instead of a walk."""
    names = [*flow.sources, *flow.operators]
    index = {name: i for i, name in enumerate(names)}
    system, rates = np.eye(len(names)), np.zeros(len(names))
    for name, rate in flow.sources.items():
        rates[index[name]] = rate
    for sender, receiver in flow.edges:
        system[index[receiver], index[sender]] -= flow.operators[receiver].selectivity
    out = np.linalg.solve(system, rates)
    return {
        name: sum(out[index[a]] for a, b in flow.edges if b == name) / operator.capacity_per_s
        for name, operator in flow.operators.items()
    }


@given(st.data())
def test_equals_the_linear_system_on_random_graphs(data: st.DataObject) -> None:
    flow = data.draw(linear_flows())
    needs = traverse(flow.snapshot(data.draw(parallelisms(flow))))
    for name, optimum in solve(flow).items():
        assert needs[name].optimum == pytest.approx(optimum, rel=1e-6)


@given(st.data())
def test_estimate_does_not_depend_on_the_present_parallelism(data: st.DataObject) -> None:
    flow = data.draw(linear_flows())
    first = traverse(flow.snapshot(data.draw(parallelisms(flow))))
    second = traverse(flow.snapshot(data.draw(parallelisms(flow))))
    for name in flow.operators:
        assert first[name].optimum == pytest.approx(second[name].optimum, rel=1e-6)


def test_word_count_of_the_paper() -> None:
    needs = traverse(WORD_COUNT.snapshot({"flat_map": 1, "count": 1}))
    assert [replicas(needs[name].optimum or 0) for name in ("flat_map", "count")] == [10, 20]


def changed(snapshot: Snapshot, task: str, stats: TaskStats) -> Snapshot:
    return msgspec.structs.replace(snapshot, tasks={**snapshot.tasks, task: stats})


def test_what_was_not_measured_makes_everything_after_it_unknown() -> None:
    snapshot = WORD_COUNT.snapshot({"flat_map": 2, "count": 2})
    bare = TaskStats(kind="task", parallelism=2, elastic=True)
    needs = traverse(changed(snapshot, "flat_map", bare))
    assert needs["flat_map"].knowledge is Knowledge.MISSING
    assert needs["count"].knowledge is Knowledge.MISSING
    assert needs["count"].optimum is None
    assert needs["count"].blamed == "flat_map"


def test_source_without_a_rate_is_blamed() -> None:
    snapshot = WORD_COUNT.snapshot({"flat_map": 2, "count": 2})
    needs = traverse(changed(snapshot, "source", TaskStats(kind="source", parallelism=1)))
    assert {need.blamed for need in needs.values()} == {"source"}


def test_idle_task_is_told_from_an_unmeasured_one() -> None:
    snapshot = WORD_COUNT.snapshot({"flat_map": 2, "count": 2})
    idle = msgspec.structs.replace(
        snapshot.tasks["flat_map"], instances=None, useful_s=0.0, processed_total=0.0, emitted_total=0.0
    )
    needs = traverse(changed(snapshot, "flat_map", idle))
    assert needs["flat_map"].knowledge is Knowledge.IDLE
    assert needs["count"].knowledge is Knowledge.IDLE
    assert needs["count"].optimum is None


def test_without_input_there_is_no_output() -> None:
    flow = LinearFlow({"source": 0.0}, WORD_COUNT.operators, WORD_COUNT.edges)
    needs = traverse(flow.snapshot({"flat_map": 2, "count": 2}))
    assert needs["count"].target_per_s == 0


@pytest.mark.parametrize(("optimum", "count"), [(0.0, 1), (0.2, 1), (3.0, 3), (3.000001, 3), (3.01, 4)])
def test_whole_replicas(optimum: float, count: int) -> None:
    assert replicas(optimum) == count


@given(st.floats(1e-3, 1e6))
def test_ceiling_suffices_and_is_the_least(optimum: float) -> None:
    count = replicas(optimum)
    assert count >= optimum * (1 - 1e-5)
    assert count <= math.ceil(optimum)


def forked(kind: Kind, *sent: float | None, processed: float = 100.0) -> Snapshot:
    """A source or a task behind one, with a stream to each of some sinks; 20 items/s are due."""
    known = [count for count in sent if count is not None]
    sender = TaskStats(
        kind=kind,
        parallelism=1,
        rate_total=20.0 if kind == "source" else None,
        processed_total=processed,
        emitted_total=sum(known) or 100.0,
        useful_s=1.0,
    )
    sinks = {f"sink{i}": TaskStats(kind="sink", parallelism=1) for i in range(len(sent))}
    streams = [
        StreamStats(origin="fork", receiver=f"sink{i}", emitted_total=count) for i, count in enumerate(sent)
    ]
    if kind == "task":
        feed = TaskStats(kind="source", parallelism=1, rate_total=20.0)
        streams = [StreamStats(origin="feed", receiver="fork"), *streams]
        sinks = {"feed": feed, **sinks}
    return Snapshot(interval_s=5.0, tasks={"fork": sender, **sinks}, streams=streams)


def targets(snapshot: Snapshot) -> list[float | None]:
    return [need.target_per_s for name, need in traverse(snapshot).items() if name.startswith("sink")]


def test_every_stream_carries_what_was_measured_on_it() -> None:
    """A filter lets a quarter through on one stream and duplicates on another: 20 items/s come to it."""
    assert targets(forked("task", 25.0, 200.0)) == pytest.approx([5.0, 40.0])
    assert targets(forked("task", 0.0, 0.0, processed=0.0)) == [None, None], "idle, so nobody knows"


def test_a_source_with_two_streams_sends_each_item_on_both() -> None:
    assert targets(forked("source", 100.0, 100.0)) == pytest.approx([20.0, 20.0])
    assert targets(forked("source", 100.0, 50.0)) == pytest.approx([20.0, 10.0])


def test_without_counts_of_all_streams_each_is_taken_to_carry_everything() -> None:
    """As in the paper, and as in snapshots of version 1."""
    assert targets(forked("task", None, None)) == pytest.approx([20.0, 20.0])
    assert targets(forked("source", 100.0, None)) == pytest.approx([20.0, 20.0])
