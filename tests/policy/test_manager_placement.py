"""Placement of managers: each way through a sequence has exactly one, and no manager has too much."""

import itertools

from hypothesis import given, settings
from hypothesis import strategies as st

from penstock.policy.batching_graph import Channel, Replica, RuntimeGraph
from penstock.policy.manager_placement import allocations, anchor_task, place_managers


def full_graph(sizes: dict[str, int], *, one_to_one: frozenset[str] = frozenset()) -> RuntimeGraph:
    """Tasks in a row, each replica joined to all of the next task, or one to one."""
    replicas = {name: [Replica(name, i) for i in range(size)] for name, size in sizes.items()}
    channels = {}
    for left, right in itertools.pairwise(sizes):
        stream = f"{left}->{right}"
        pairs = itertools.product(replicas[left], replicas[right])
        if stream in one_to_one:
            pairs = zip(replicas[left], replicas[right], strict=True)  # type: ignore[assignment]
        channels[stream] = frozenset(Channel(stream, a, b) for a, b in pairs)
    return RuntimeGraph({name: frozenset(group) for name, group in replicas.items()}, channels)


def sequence_of(names: list[str]) -> list[str]:
    return [part for a, b in itertools.pairwise(names) for part in (a, f"{a}->{b}")] + [names[-1]]


@st.composite
def placed(draw: st.DrawFn) -> tuple[RuntimeGraph, dict[Replica, str], list[str]]:
    names = list("abcd"[: draw(st.integers(2, 4))])
    size = draw(st.integers(1, 3))
    alike = draw(st.booleans())
    sizes = {name: size if alike else draw(st.integers(1, 3)) for name in names}
    streams = [f"{a}->{b}" for a, b in itertools.pairwise(names)]
    direct = frozenset(draw(st.sets(st.sampled_from(streams)))) if alike else frozenset()
    graph = full_graph(sizes, one_to_one=direct)
    everyone = sorted(replica for group in graph.replicas.values() for replica in group)
    workers = {replica: draw(st.sampled_from(["w1", "w2", "w3"])) for replica in everyone}
    return graph, workers, sequence_of(names)


def ways(graph: RuntimeGraph, sequence: list[str]) -> list[tuple[Channel, ...]]:
    streams = [name for name in sequence if "->" in name]
    choices = itertools.product(*(graph.channels[name] for name in streams))
    return [way for way in choices if all(a.receiver == b.sender for a, b in itertools.pairwise(way))]


@settings(max_examples=60)
@given(placed())
def test_every_way_belongs_to_exactly_one_manager(
    problem: tuple[RuntimeGraph, dict[Replica, str], list[str]],
) -> None:
    graph, workers, sequence = problem
    managers = place_managers(graph, workers, [sequence])
    needed: dict[str, set[Channel]] = {worker: set() for worker in managers}
    for way in ways(graph, sequence):
        owners = [w for w, part in managers.items() if all(c in part.channels[c.stream] for c in way)]
        assert len(owners) == 1
        needed[owners[0]].update(way)
    for worker, part in managers.items():
        assert set().union(*part.channels.values()) == needed[worker]


@settings(max_examples=60)
@given(placed())
def test_a_manager_on_each_worker_of_the_anchor(
    problem: tuple[RuntimeGraph, dict[Replica, str], list[str]],
) -> None:
    graph, workers, sequence = problem
    anchor = anchor_task(graph, workers, sequence)
    spread = {task: {workers[r] for r in group} for task, group in graph.replicas.items()}
    assert len(spread[anchor]) == max(len(on) for on in spread.values())
    assert set(allocations(graph, workers, sequence)) == spread[anchor]


def test_the_anchor_with_fewest_channels() -> None:
    graph = full_graph({"a": 2, "b": 2, "c": 2}, one_to_one=frozenset({"a->b"}))
    workers = {r: f"w{r.number}" for group in graph.replicas.values() for r in group}
    assert anchor_task(graph, workers, sequence_of(["a", "b", "c"])) == "a"
    assert anchor_task(graph, workers, ["b->c"]) == "b"


def test_parts_of_two_constraints_on_one_worker_are_merged() -> None:
    graph = full_graph({"a": 1, "b": 1, "c": 1})
    workers = {r: "w1" for group in graph.replicas.values() for r in group}
    managers = place_managers(graph, workers, [["a->b", "b"], ["b->c", "c"]])
    assert set(managers["w1"].channels) == {"a->b", "b->c"}
    assert set(managers["w1"].replicas) == {"a", "b", "c"}
