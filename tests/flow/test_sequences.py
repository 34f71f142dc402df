"""Where items enter and leave the sequences of constraints."""

import pytest

from penstock.flow import Flow
from penstock.flow.graph import Graph
from penstock.flow.sequences import Place, alone, places
from tests.flow.random_flows import Partitioned, ignore


class Gathers:
    latency_kind = "read_write"

    def process(self, item: object, out: object) -> None:
        """Nothing."""


def graph(*sequences: list[str], gathers: bool = False) -> Graph:
    """source -> a -> b -> sink, and source -> b."""
    flow = Flow("follow")
    source = flow.source(Partitioned(1), name="source")
    a = source.map(abs, name="a")
    b = flow.task(Gathers, a, source, name="b") if gathers else flow.map(abs, a, source, name="b")
    b.sink(ignore, name="sink")
    for number, sequence in enumerate(sequences):
        flow.constrain("20 ms", sequence, name=f"c{number}")
    return flow.graph()


def by_name(made: Graph) -> dict[str, Place]:
    return {made.streams[number].name: place for number, place in places(made).items()}


def number(made: Graph, stream: str) -> int:
    return [one.name for one in made.streams].index(stream)


def test_from_a_source_to_a_sink() -> None:
    made = graph(["source->a", "a", "a->b", "b", "b->sink", "sink"])
    assert by_name(made) == {
        "source->a": Place("c0", "due"),
        "a->b": Place("c0", "before", number(made, "source->a")),
        "b->sink": Place("c0", "before", number(made, "a->b"), "done"),
    }


def test_from_the_middle_to_the_middle() -> None:
    assert by_name(graph(["a->b", "b", "b->sink"])) == {
        "a->b": Place("c0", "emitted"),
        "b->sink": Place("c0", "before", number(graph(), "a->b"), "taken"),
    }
    assert by_name(graph(["a", "a->b", "b"])) == {"a->b": Place("c0", "taken", None, "done")}
    assert by_name(graph(["a->b"])) == {"a->b": Place("c0", "emitted", None, "taken")}


def test_constraints_that_share_a_task() -> None:
    made = graph(["source->a", "a"], ["a", "a->b"], ["a"])
    assert by_name(made) == {
        "source->a": Place("c0", "due", None, "done"),
        "a->b": Place("c1", "taken", None, "taken"),
    }
    assert alone(made, "a") == ("c2",)
    assert alone(made, "b") == ()


@pytest.mark.parametrize("sequence", [["a->b", "b"], ["b"]])
def test_nobody_is_followed_into_a_task_that_gathers(sequence: list[str]) -> None:
    made = graph(sequence, gathers=True)
    assert all(place.exit is None for place in places(made).values())
    assert alone(made, "b") == ()
