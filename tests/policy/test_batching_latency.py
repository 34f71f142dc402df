"""Latency before and after each channel, checked against all ways an item can take."""

import itertools

import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.policy.batching_graph import Channel, Replica, RuntimeGraph
from penstock.policy.batching_latency import downstream_latencies_ms, upstream_latencies_ms


@st.composite
def layered(draw: st.DrawFn) -> tuple[RuntimeGraph, list[str], dict[Replica, float]]:
    """Tasks a, b, c, d with some replicas; every replica has a channel in and out; any part as sequence."""
    names = list("abcd"[: draw(st.integers(2, 4))])
    replicas = {name: [Replica(name, i) for i in range(draw(st.integers(1, 3)))] for name in names}
    channels: dict[str, frozenset[Channel]] = {}
    for left, right in itertools.pairwise(names):
        stream = f"{left}->{right}"
        drawn = draw(st.sets(st.sampled_from(list(itertools.product(replicas[left], replicas[right])))))
        needed = [(r, replicas[right][0]) for r in replicas[left]]
        needed += [(replicas[left][0], r) for r in replicas[right]]
        channels[stream] = frozenset(Channel(stream, a, b) for a, b in {*drawn, *needed})
    elements = [part for a, b in itertools.pairwise(names) for part in (a, f"{a}->{b}")] + [names[-1]]
    begin = draw(st.integers(0, 1))
    end = draw(st.integers(len(elements) - 1, len(elements)))
    latency_ms = {r: draw(st.floats(0, 100)) for group in replicas.values() for r in group}
    graph = RuntimeGraph({name: frozenset(group) for name, group in replicas.items()}, channels)
    return graph, elements[begin:end], latency_ms


def ways(graph: RuntimeGraph, sequence: list[str]) -> list[list[Channel]]:
    streams = [name for name in sequence if "->" in name]
    choices = itertools.product(*(graph.channels[name] for name in streams))
    return [list(way) for way in choices if all(a.receiver == b.sender for a, b in itertools.pairwise(way))]


def own_ms(replica: Replica, sequence: list[str], latency_ms: dict[Replica, float]) -> float:
    return latency_ms[replica] if replica.task in sequence else 0.0


@given(layered())
def test_the_largest_latency_over_all_ways(
    problem: tuple[RuntimeGraph, list[str], dict[Replica, float]],
) -> None:
    graph, sequence, latency_ms = problem
    down_ms = downstream_latencies_ms(graph, sequence, latency_ms)
    up_ms = upstream_latencies_ms(graph, sequence, latency_ms)
    after: dict[Channel, float] = {}
    before: dict[Channel, float] = {}
    for way in ways(graph, sequence):
        for index, channel in enumerate(way):
            rest = sum(own_ms(c.receiver, sequence, latency_ms) for c in way[index:])
            past = sum(own_ms(c.sender, sequence, latency_ms) for c in way[: index + 1])
            after[channel] = max(rest, after.get(channel, 0.0))
            before[channel] = max(past, before.get(channel, 0.0))
    assert down_ms == pytest.approx(after)
    assert up_ms == pytest.approx(before)


def test_a_sequence_that_begins_and_ends_with_a_stream() -> None:
    a, b, c = (Replica(name, 0) for name in "abc")
    first, second = Channel("a->b", a, b), Channel("b->c", b, c)
    graph = RuntimeGraph(
        {"a": frozenset({a}), "b": frozenset({b}), "c": frozenset({c})},
        {"a->b": frozenset({first}), "b->c": frozenset({second})},
    )
    sequence = ["a->b", "b", "b->c"]
    assert downstream_latencies_ms(graph, sequence, {b: 3.0}) == {first: 3.0, second: 0.0}
    assert upstream_latencies_ms(graph, sequence, {b: 3.0}) == {first: 0.0, second: 3.0}
