"""The part of a flow behind a task."""

from penstock.flow import Flow
from penstock.flow.cut import Cut, from_task
from penstock.flow.layers import lay_out
from tests.flow.random_flows import Partitioned, ignore


def whole() -> Flow:
    flow = Flow("whole", ids=True)
    source = flow.source(Partitioned(2), name="source")
    letters_1 = source.map(ignore, name="letters_1")
    middle = flow.map(
        ignore, source.by_key(hash), letters_1.broadcast(), name="middle", parallelism=2, memory="20 MB"
    )
    behind = middle.forward().map(ignore, name="behind")
    flow.sink(ignore, behind, letters_1, name="end")
    source.sink(ignore, name="beside")
    return flow


def test_the_task_and_all_behind_it_with_sources_in_the_place_of_its_inputs() -> None:
    graph = whole().graph()
    part = from_task(graph, "middle", {"source->middle": "s", "letters_1->middle": "l"})
    assert [(task.name, task.kind) for task in part.tasks] == [
        ("letters_1", "source"),
        ("letters_2", "source"),
        ("middle", "task"),
        ("behind", "task"),
        ("end", "sink"),
    ]
    assert [(stream.name, stream.sender, stream.wiring, stream.keeps_ids) for stream in part.streams] == [
        ("source->middle", "letters_1", "key", True),
        ("letters_1->middle", "letters_2", "round_robin", True),
        ("middle->behind", "middle", "forward", False),
        ("behind->end", "behind", "round_robin", False),
    ]
    assert part.task("middle") == graph.task("middle")
    assert [task.body for task in part.tasks[:2]] == ["s", "l"]
    assert lay_out(Cut(part).graph()).slots == 5


def test_names_of_sources_are_free() -> None:
    flow = Flow("taken")
    source = flow.source(Partitioned(1), name="source")
    source.map(ignore, name="first").sink(ignore, name="letters_1")
    part = from_task(flow.graph(), "first", {"source->first": None})
    assert [task.name for task in part.tasks] == ["letters_1_", "first", "letters_1"]
