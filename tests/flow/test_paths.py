"""Paths through a graph, against a plain enumeration."""

from hypothesis import given
from hypothesis import strategies as st

from penstock.flow import Flow
from penstock.flow.graph import Graph
from penstock.flow.paths import connected, following, paths_between
from tests.flow.random_flows import Partitioned, flows, ignore


def all_paths(graph: Graph, start: str, end: str) -> set[tuple[str, ...]]:
    if start == end:
        return {(start,)}
    return {(start, *rest) for step in following(graph, start) for rest in all_paths(graph, step, end)}


@given(flows(most_tasks=5), st.data(), st.integers(1, 3))
def test_paths(flow: Flow, data: st.DataObject, limit: int) -> None:
    graph = flow.graph()
    elements = [task.name for task in graph.tasks] + [stream.name for stream in graph.streams]
    start, end = data.draw(st.sampled_from(elements)), data.draw(st.sampled_from(elements))
    expected = all_paths(graph, start, end)
    assert set(paths_between(graph, start, end, limit=10_000)) == expected
    some = paths_between(graph, start, end, limit=limit)
    assert len(some) == min(limit, len(expected))
    assert set(some) <= expected


def test_a_graph_with_2_to_the_60_paths_is_no_trouble() -> None:
    flow = Flow("ladder")
    rung = flow.source(Partitioned(1), name="s")
    for number in range(60):
        left = rung.map(ignore, name=f"left{number}")
        right = rung.map(ignore, name=f"right{number}")
        rung = flow.map(ignore, left, right, name=f"rung{number}")
    rung.sink(print)
    flow.sink(ignore, "s", name="aside")
    assert len(paths_between(flow.graph(), "s", "print", limit=2)) == 2
    assert paths_between(flow.graph(), "s", "aside", limit=2) == [("s", "s->aside", "aside")]


def test_connected() -> None:
    flow = Flow("f")
    flow.source(Partitioned(1), name="s").sink(ignore, name="k")
    graph = flow.graph()
    assert connected(graph, "s", "s->k")
    assert connected(graph, "s->k", "k")
    assert not connected(graph, "s", "k")
    assert not connected(graph, "k", "s->k")
