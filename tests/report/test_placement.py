"""Any flow can be placed: streams lead to the right, and no two things stand in the same place."""

from itertools import pairwise

from hypothesis import given

from penstock.flow import Flow
from penstock.flow.layers import lay_out
from penstock.report.placement import Bend, crossings, place
from tests.flow.random_flows import Partitioned, flows, ignore


@given(flows())
def test_every_task_has_its_own_place(flow: Flow) -> None:
    placed = place(lay_out(flow.graph()))
    tasks = [node for column in placed.columns for node in column if isinstance(node, str)]
    assert sorted(tasks) == sorted(task.name for task in flow.graph().tasks)
    for column in placed.columns:
        rows = [placed.rows[node] for node in column]
        assert all(lower - upper > 0.999 for upper, lower in pairwise(rows))
    assert min(placed.rows.values()) == 0


@given(flows())
def test_streams_lead_from_column_to_column(flow: Flow) -> None:
    graph = flow.graph()
    placed = place(lay_out(graph))
    for stream in graph.streams:
        way = placed.ways[stream.name]
        assert (way[0], way[-1]) == (stream.sender, stream.receiver)
        assert all(isinstance(node, Bend) for node in way[1:-1])
        numbers = [placed.column_of(node) for node in way]
        assert numbers == list(range(numbers[0], numbers[0] + len(way)))


@given(flows())
def test_layers_take_columns_of_their_own(flow: Flow) -> None:
    layout = lay_out(flow.graph())
    placed = place(layout)
    assert [first for first, _ in placed.spans] == [0, *(last + 1 for _, last in placed.spans[:-1])]
    for layer, (first, last) in zip(layout.layers, placed.spans, strict=True):
        for unit in layer.units:
            assert all(first <= placed.column_of(name) <= last for name in unit.tasks)


def test_two_lines_that_need_not_cross_do_not() -> None:
    flow = Flow("two_lines")
    left, right = (flow.source(Partitioned(1), name=name) for name in ("left", "right"))
    second = right.map(ignore, name="second")
    first = left.map(ignore, name="first")
    second.sink(ignore, name="end2")
    first.sink(ignore, name="end1")
    placed = place(lay_out(flow.graph()))
    links = [link for way in placed.ways.values() for link in pairwise(way)]
    assert crossings(placed.columns, links) == 0
    assert placed.rows["left"] == placed.rows["first"] == placed.rows["end1"]


def test_crossings_are_counted() -> None:
    columns = [["a", "b"], ["c", "d"]]
    assert crossings(columns, [("a", "d"), ("b", "c")]) == 1
    assert crossings(columns, [("a", "c"), ("b", "d"), ("a", "d")]) == 0
