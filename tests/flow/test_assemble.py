"""Putting a flow together: order, ids, parallelism of forward tasks, and everything that is refused."""

import graphlib
import re
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.flow import Flow, FlowError, elastic
from penstock.flow.graph import ITEM_ID
from penstock.flow.parallelism import fixed
from tests.flow.random_flows import Partitioned, Splitter, flows, ignore


class Deduplicating:
    by_id = True

    def write(self, item: object) -> None: ...


def refusal(flow: Flow) -> str:
    with pytest.raises(FlowError) as refused:
        flow.graph()
    return str(refused.value)


@given(flows())
def test_order(flow: Flow) -> None:
    graph = flow.graph()
    position = {task.name: index for index, task in enumerate(graph.tasks)}
    assert all(position[stream.sender] < position[stream.receiver] for stream in graph.streams)
    assert flow.graph() == graph


def test_tasks_may_be_read_before_they_are_declared() -> None:
    flow = Flow("f")
    flow.sink(ignore, flow.output("b.late").broadcast(), "a", name="k")
    flow.task(Splitter, "a", name="b")
    flow.map(ignore, "s", name="a")
    flow.source(Partitioned(1), name="s")
    graph = flow.graph()
    assert [task.name for task in graph.tasks] == ["s", "a", "b", "k"]
    assert [stream.name for stream in graph.streams] == ["s->a", "a->b", "a->k", "b.late->k"]
    assert graph.stream("b.late->k").wiring == "broadcast"


def test_a_forward_reader_takes_over_the_parallelism() -> None:
    flow = Flow("f")
    a = flow.source(Partitioned(2), name="s").map(ignore, name="a", parallelism=elastic(1, 16, initial=3))
    a.forward().map(ignore, name="b").forward().sink(ignore, name="k")
    graph = flow.graph()
    assert graph.task("k").parallelism == elastic(1, 16, initial=3)
    assert "parallelism" in graph.task("k").defaults


def test_deduplicating_sinks_are_keyed_by_item_id() -> None:
    flow = Flow("f", ids=True)
    flow.source(Partitioned(2), name="s").batched("5 ms").sink(Deduplicating(), name="k", parallelism=3)
    stream = flow.graph().stream("s->k")
    assert (stream.wiring, stream.key, stream.batch_lifetime_ms) == ("key", ITEM_ID, 5.0)
    assert flow.graph().ids


def test_deduplicating_sinks_need_ids() -> None:
    flow = Flow("f")
    flow.source(Partitioned(2), name="s").sink(Deduplicating, name="k")
    assert (
        refusal(flow) == 'sink "k" of flow "f" needs items with ids; declare the flow as Flow("f", ids=True)'
    )


def test_deduplicating_sinks_choose_their_wiring() -> None:
    flow = Flow("f", ids=True)
    flow.source(Partitioned(2), name="s").broadcast().sink(Deduplicating, name="k")
    assert refusal(flow) == (
        'stream "s->k" of flow "f" is wired broadcast, but sink "k" spreads items by their ids;'
        " remove the wiring"
    )


def test_cycle() -> None:
    flow = Flow("f")
    flow.source(Partitioned(1), name="s").map(ignore, "c", name="a").map(ignore, name="b")
    flow.map(ignore, "b", name="c").sink(print)
    assert refusal(flow) == (
        'flow "f" has a cycle: a -> b -> c -> a; a flow must not lead back to itself,'
        " so remove one of these streams"
    )


def test_a_task_that_reads_itself() -> None:
    flow = Flow("f")
    flow.source(Partitioned(1), name="s").map(ignore, "a", name="a").sink(print)
    assert "has a cycle: a -> a;" in refusal(flow)


def test_a_cycle_is_shown_without_what_leads_out_of_it() -> None:
    flow = Flow("f")
    flow.source(Partitioned(1), name="s")
    flow.sink(print, "b", name="k")
    flow.map(ignore, "s", "b", name="a")
    flow.map(ignore, "a", name="b")
    assert "has a cycle: a -> b -> a;" in refusal(flow)


@given(st.sets(st.tuples(st.integers(0, 5), st.integers(0, 5)), max_size=12))
def test_any_graph_is_a_dag_or_refused_with_one_of_its_cycles(edges: set[tuple[int, int]]) -> None:
    flow = Flow("f")
    flow.source(Partitioned(1), name="s")
    for task in range(6):
        read = [f"t{sender}" for sender, receiver in sorted(edges) if receiver == task]
        flow.map(ignore, "s", *read, name=f"t{task}").sink(ignore, name=f"k{task}")
    try:
        graphlib.TopologicalSorter({n: {a for a, b in edges if b == n} for n in range(6)}).prepare()
    except graphlib.CycleError:
        shown = re.search("has a cycle: (.*?);", refusal(flow))
    else:
        assert len(flow.graph().streams) == len(edges) + 12
        return
    assert shown is not None
    loop = [int(name[1:]) for name in shown[1].split(" -> ")]
    assert loop[0] == loop[-1]
    assert set(pairwise(loop)) <= edges


def test_no_source() -> None:
    assert refusal(Flow("f")) == 'flow "f" has no source; add one with flow.source(...)'


def test_reading_what_does_not_exist() -> None:
    flow = Flow("f")
    flow.source(Partitioned(1), name="s").sink(ignore, "t", name="k")
    assert refusal(flow) == (
        'sink "k" of flow "f" reads "t", which does not exist; declare it or read one of s, k'
    )


def test_reading_an_output_that_does_not_exist() -> None:
    flow = Flow("f")
    flow.source(Partitioned(1), name="s").task(Splitter, name="a").sink(ignore, "a.later", name="k")
    assert refusal(flow) == (
        'sink "k" of flow "f" reads output "later" of "a", which does not exist; its outputs are hits, late'
    )


def test_reading_a_sink() -> None:
    flow = Flow("f")
    flow.source(Partitioned(1), name="s").sink(ignore, name="k")
    flow.map(ignore, "k", name="a").sink(print)
    assert refusal(flow) == (
        'task "a" of flow "f" reads sink "k", but a sink has no outputs; read a task instead'
    )


def test_the_same_stream_twice() -> None:
    flow = Flow("f")
    source = flow.source(Partitioned(1), name="s")
    source.sink(ignore, source.broadcast(), name="k")
    assert refusal(flow) == ('flow "f" has stream "s->k" twice; read an output once, or read another output')


def test_dead_ends() -> None:
    flow = Flow("f")
    source = flow.source(Partitioned(1), name="s")
    assert refusal(flow) == (
        'nothing reads source "s" of flow "f"; lead it to a sink with .sink(...) or remove it'
    )
    source.map(ignore, name="a")
    assert refusal(flow) == (
        'nothing reads task "a" of flow "f"; lead it to a sink with .sink(...) or remove it'
    )


def test_forward_between_different_parallelisms() -> None:
    flow = Flow("f")
    flow.source(Partitioned(2), name="s").forward().sink(ignore, name="k", parallelism=elastic(1, 4))
    assert refusal(flow) == (
        'forward stream "s->k" of flow "f" connects parallelism 2 with elastic(1, 4, initial=1, pool=4);'
        " give both the same parallelism, or use .round_robin()"
    )


def test_forward_from_two_parallelisms() -> None:
    flow = Flow("f")
    one, two = flow.source(Partitioned(1), name="one"), flow.source(Partitioned(2), name="two")
    flow.sink(ignore, one.forward(), two.forward(), name="k")
    assert "connects parallelism 2 with 1;" in refusal(flow)


def test_a_fixed_task_may_follow_a_source_of_as_many_partitions() -> None:
    flow = Flow("f")
    flow.source(Partitioned(2), name="s").forward().sink(ignore, name="k", parallelism=2)
    assert flow.graph().task("k").parallelism == fixed(2)


def test_ids_are_true_or_false() -> None:
    flow = Flow("f", ids="yes")  # type: ignore[arg-type]
    assert refusal(flow) == "flow \"f\": ids must be True or False, not 'yes'"
