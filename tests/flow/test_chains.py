"""Which tasks may be chained, and what is refused."""

import pytest
from hypothesis import given

from penstock.flow import Flow, FlowError
from penstock.flow.chains import all_chains, pipelines
from penstock.flow.layers import Layout, lay_out
from tests.flow.random_flows import Partitioned, flows, ignore


def pipeline() -> Layout:
    flow = Flow("pipe")
    source = flow.source(Partitioned(2), name="source")
    a = source.map(ignore, name="a", parallelism=2)
    b = a.forward().map(ignore, name="b", parallelism=2)
    c = b.forward().map(ignore, name="c", parallelism=2)
    c.forward().sink(ignore, name="sink", parallelism=2)
    return lay_out(flow.graph())


def test_forward_tasks_are_a_pipeline_without_their_source() -> None:
    assert pipelines(pipeline()) == [["a", "b", "c", "sink"]]


def test_second_reader_ends_a_pipeline() -> None:
    flow = Flow("fork")
    a = flow.source(Partitioned(1), name="source").map(ignore, name="a")
    b = a.forward().map(ignore, name="b")
    b.forward().sink(ignore, name="one")
    b.forward().sink(ignore, name="two")
    assert pipelines(lay_out(flow.graph())) == [["a", "b"], ["one"], ["two"]]


def test_chains_are_completed_with_tasks_on_their_own() -> None:
    assert all_chains(pipeline(), [["b", "c"]]) == [["a"], ["b", "c"], ["sink"]]
    assert all_chains(pipeline(), []) == [["a"], ["b"], ["c"], ["sink"]]


@pytest.mark.parametrize(
    ("wanted", "message"),
    [
        ([["a", "c"]], "a -> c is no chain"),
        ([["b", "a"]], "b -> a is no chain"),
        ([["source", "a"]], "source -> a is no chain"),
        ([["a", "b"], ["b", "c"]], "a task of chain b -> c is in another chain too"),
        ([["nobody"]], 'has no task "nobody"'),
    ],
)
def test_refusals(wanted: list[list[str]], message: str) -> None:
    with pytest.raises(FlowError, match=message):
        all_chains(pipeline(), wanted)


def test_limits_of_memory_add_up_so_all_tasks_of_a_chain_have_one_or_none() -> None:
    flow = Flow("limited")
    source = flow.source(Partitioned(1), name="source")
    a = source.map(ignore, name="a", memory="20 MB").forward().map(ignore, name="b", memory="30 MB")
    a.forward().map(ignore, name="c").forward().sink(ignore, name="sink")
    layout = lay_out(flow.graph())
    assert pipelines(layout) == [["a", "b"], ["c", "sink"]]
    with pytest.raises(FlowError, match=r"b -> c is no chain.*, and all or none have a memory="):
        all_chains(layout, [["b", "c"]])


@given(flows())
def test_pipelines_hold_every_task_but_sources_once_and_are_chains(flow: Flow) -> None:
    layout = lay_out(flow.graph())
    found = pipelines(layout)
    names = [name for chain in found for name in chain]
    assert sorted(names) == sorted(task.name for task in layout.graph.tasks if task.kind != "source")
    assert all_chains(layout, found) == found


def test_a_task_may_forbid_it() -> None:
    flow = Flow("kept")
    a = flow.source(Partitioned(1), name="source").map(ignore, name="a")
    b = a.forward().map(ignore, name="b", chain=False).forward().map(ignore, name="c")
    b.forward().sink(ignore, name="sink")
    layout = lay_out(flow.graph())
    assert pipelines(layout) == [["a"], ["b"], ["c", "sink"]]
    assert all_chains(layout, [["c", "sink"], ["b"]]) == [["a"], ["b"], ["c", "sink"]]
    with pytest.raises(FlowError, match='a -> b is no chain: task "b" has chain=False, so it keeps'):
        all_chains(layout, [["a", "b"]])
