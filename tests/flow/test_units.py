"""Which forward streams join their ends, and why others do not."""

import pytest
from hypothesis import given

from penstock.flow import Flow
from penstock.flow.layers import lay_out
from penstock.flow.units import join_forward, obstacle
from tests.flow.random_flows import Partitioned, flows, ignore


def test_a_pipeline_is_one_unit() -> None:
    flow = Flow("f")
    source = flow.source(Partitioned(2), name="s")
    source.forward().map(ignore, name="a").forward().map(ignore, name="b").forward().sink(ignore, name="k")
    assert set(join_forward(flow.graph()).values()) == {frozenset("sabk")}


def test_a_diamond_of_forward_streams_is_one_unit() -> None:
    flow = Flow("f")
    source = flow.source(Partitioned(2), name="s")
    a = source.forward().map(ignore, name="a")
    flow.sink(ignore, source.forward(), a.forward(), name="k")
    assert set(join_forward(flow.graph()).values()) == {frozenset("sak")}


def test_a_forward_stream_beside_a_detour() -> None:
    flow = Flow("f")
    source = flow.source(Partitioned(2), name="s")
    a = source.map(ignore, name="a", parallelism=3)
    flow.sink(ignore, source.forward(), a, name="k")
    layout = lay_out(flow.graph())
    assert not layout.is_local("s->k")
    assert layout.why_apart("s->k") == 'the two are also connected by way of "a"'
    assert layout.relay_of(1) == 3


def test_another_wiring_between_the_same_tasks() -> None:
    flow = Flow("f")
    s = flow.source(Partitioned(2), name="s")
    a = s.map(ignore, name="a", parallelism=2)
    b = a.forward().map(ignore, name="b")
    c = flow.map(ignore, b.forward(), a.by_key(hash), name="c")
    c.sink(print)
    layout = lay_out(flow.graph())
    assert layout.why_apart("b->c") == 'stream "a->c" (key) also leads between the two'
    assert layout.is_local("a->b")


def test_two_sources_do_not_share_partitions() -> None:
    flow = Flow("f")
    one = flow.source(Partitioned(2), name="one")
    two = flow.source(Partitioned(2), name="two")
    flow.sink(ignore, one.forward(), two.forward(), name="k")
    layout = lay_out(flow.graph())
    blocked = [name for name in ("one->k", "two->k") if not layout.is_local(name)]
    assert blocked == ["one->k", "two->k"]
    assert (
        layout.why_apart("one->k")
        == 'stream "two->k" cannot be delivered into the partitions of source "one"'
    )


def test_sources_that_would_share_partitions_through_a_join() -> None:
    flow = Flow("f")
    one = flow.source(Partitioned(2), name="one")
    two = flow.source(Partitioned(2), name="two")
    flow.sink(ignore, one.forward(), two.forward(), name="k")
    graph = flow.graph()
    groups = {"one": frozenset({"one", "k"}), "k": frozenset({"one", "k"}), "two": frozenset({"two"})}
    assert obstacle(graph, groups, graph.stream("two->k")) == (
        'sources "one" and "two" cannot share partitions'
    )


def test_a_source_unit_reads_nothing_else() -> None:
    flow = Flow("f")
    one = flow.source(Partitioned(2), name="one")
    two = flow.source(Partitioned(3), name="two")
    a = flow.map(ignore, one.forward(), two.broadcast(), name="a")
    a.forward().sink(ignore, name="k")
    layout = lay_out(flow.graph())
    assert (
        layout.why_apart("one->a")
        == 'stream "two->a" cannot be delivered into the partitions of source "one"'
    )
    assert layout.is_local("a->k")


def test_what_lies_between_is_joined_first() -> None:
    flow = Flow("f")
    flow.source(Partitioned(1), name="s").map(ignore, name="a", parallelism=2)
    # "c" is declared before "b", but "a" and "c" cannot be joined before "b" has joined one of them.
    flow.map(ignore, flow.output("a").forward(), flow.output("b").forward(), name="c").sink(print)
    flow.map(ignore, flow.output("a").forward(), name="b")
    assert frozenset("abc") in join_forward(flow.graph()).values()


@given(flows())
def test_units(flow: Flow) -> None:
    graph = flow.graph()
    groups = join_forward(graph)
    for name, group in groups.items():
        assert name in group
        assert all(groups[other] == group for other in group)
        members = [graph.task(member) for member in group]
        assert len({member.parallelism for member in members}) == 1
        sources = [member for member in members if member.kind == "source"]
        outside = [s for s in graph.streams if s.receiver in group and s.sender not in group]
        assert len(sources) <= 1
        assert not (sources and outside)
    for stream in graph.streams:
        if groups[stream.sender] == groups[stream.receiver]:
            assert stream.wiring == "forward"
        elif stream.wiring == "forward":
            assert obstacle(graph, groups, stream) is not None


@pytest.mark.parametrize("wiring", ["round_robin", "broadcast"])
def test_only_forward_joins(wiring: str) -> None:
    flow = Flow("f")
    getattr(flow.source(Partitioned(1), name="s"), wiring)().sink(ignore, name="k")
    assert set(join_forward(flow.graph()).values()) == {frozenset("s"), frozenset("k")}


def test_way_back_through_another_unit_is_a_detour() -> None:
    """No path leads from u to v but by way of the unit of p: joining them would close a cycle of units."""
    flow = Flow("knot")
    source = flow.source(Partitioned(1), name="source")
    u = source.map(ignore, name="u")
    p = source.map(ignore, name="p")
    y = p.forward().map(ignore, name="y")
    flow.sink(ignore, p.forward(), u, name="x")
    flow.sink(ignore, u.forward(), y, name="v")
    layout = lay_out(flow.graph())
    joined = {frozenset(unit.tasks) for layer in layout.layers for unit in layer.units if len(unit.tasks) > 1}
    assert joined in ({frozenset("uv"), frozenset("py")}, {frozenset("pxy")})
