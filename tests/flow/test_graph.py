"""The model: lookups, and the item id as a key."""

import pickle
from dataclasses import replace

import pytest
from hypothesis import given

from penstock.flow import Flow, FlowError
from penstock.flow.graph import ITEM_ID, Graph
from tests.flow.random_flows import Partitioned, flows, ignore


def small() -> Graph:
    flow = Flow("small")
    flow.source(Partitioned(2), name="numbers").map(ignore).sink(print)
    return flow.graph()


def test_lookup() -> None:
    graph = small()
    assert graph.task("ignore").form == "map"
    assert graph.stream("ignore->print").receiver == "print"


def test_unknown_names_are_refused_with_the_known_ones() -> None:
    with pytest.raises(FlowError) as refused:
        small().task("prime")
    assert str(refused.value) == 'flow "small" has no task "prime"; its tasks are numbers, ignore, print'
    with pytest.raises(FlowError) as refused:
        small().stream("a->b")
    assert str(refused.value) == (
        'flow "small" has no stream "a->b"; its streams are numbers->ignore, ignore->print'
    )


def test_the_item_id_stays_itself_through_pickling() -> None:
    assert pickle.loads(pickle.dumps(ITEM_ID)) is ITEM_ID


@given(flows())
def test_a_graph_travels(flow: Flow) -> None:
    graph = flow.graph()
    copy = pickle.loads(pickle.dumps(graph))
    assert copy.streams == graph.streams
    assert [replace(task, body=None) for task in copy.tasks] == [
        replace(task, body=None) for task in graph.tasks
    ]


@given(flows())
def test_every_stream_is_an_output_of_its_sender_and_an_input_of_its_receiver(flow: Flow) -> None:
    graph = flow.graph()
    assert [s for task in graph.tasks for s in graph.outputs_of(task.name)] == list(graph.streams)
    assert {s for task in graph.tasks for s in graph.inputs_of(task.name)} == set(graph.streams)
    for stream in graph.streams:
        assert stream.output in graph.task(stream.sender).outputs
        assert graph.stream(stream.name) is stream
