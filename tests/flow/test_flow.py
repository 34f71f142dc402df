"""Declaring a flow: what is refused at once, and that nothing half-declared stays behind."""

from collections.abc import Callable
from typing import Any

import pytest

from penstock.flow import Flow, FlowError, Sink
from tests.flow.random_flows import Partitioned, Splitter, ignore


def declared() -> Flow:
    flow = Flow("f")
    flow.source(Partitioned(1), name="s").map(ignore, name="a").sink(ignore, name="k")
    return flow


def test_the_same_flow_in_both_styles() -> None:
    fluent = Flow("f")
    fluent.source(Partitioned(2), name="s").map(ignore, name="a").filter(bool).sink(print)
    explicit = Flow("f")
    source = explicit.source(explicit_source := Partitioned(2), name="s")
    explicit.sink(print, explicit.filter(bool, explicit.map(ignore, source, name="a")))
    assert fluent.graph().streams == explicit.graph().streams
    assert [task.name for task in fluent.graph().tasks] == [task.name for task in explicit.graph().tasks]
    assert explicit.graph().task("s").body is explicit_source


def test_flat_map_and_several_inputs() -> None:
    flow = Flow("f")
    one, two = flow.source(Partitioned(1), name="one"), flow.source(Partitioned(1), name="two")
    flow.flat_map(list, one, two.broadcast()).sink(print)
    assert [stream.wiring for stream in flow.graph().inputs_of("list")] == ["round_robin", "broadcast"]


def test_a_sink_is_an_end() -> None:
    flow = Flow("f")
    sink = flow.source(Partitioned(1)).sink(ignore, name="k")
    assert isinstance(sink, Sink)
    assert sink.name == "k"
    assert not hasattr(sink, "map")


def test_repr() -> None:
    assert repr(Flow("f", ids=True)) == "Flow('f', ids=True)"


@pytest.mark.parametrize(
    ("use", "message"),
    [
        (lambda f: Flow(""), "flow name is empty; give it at least one letter"),
        (
            lambda f: Flow("my flow"),
            "flow name 'my flow' is not allowed; use letters, digits, _ and -, beginning with a letter or _",
        ),
        (
            lambda f: f.map(ignore, "s", name="a"),
            'flow "f" has two tasks "a"; give one of them another name, as in name="a_2"',
        ),
        (
            lambda f: f.source(Partitioned(1), name="a"),
            'flow "f" has two tasks "a"; give one of them another name, as in name="a_2"',
        ),
        (lambda f: f.map(ignore), 'task "ignore" of flow "f" reads nothing; give it at least one input'),
        (lambda f: f.sink(ignore), 'sink "ignore" of flow "f" reads nothing; give it at least one input'),
        (
            lambda f: f.map(ignore, 7),
            'task "ignore" of flow "f": an input is an output of a task or its name, not 7',
        ),
        (
            lambda f: f.map(ignore, Flow("g").source(Partitioned(1), name="other")),
            'task "ignore" of flow "f" reads "other" of flow "g"; both must be in one flow',
        ),
        (
            lambda f: f.map(ignore, f.output("s").sink(ignore, name="end")),
            'task "ignore" of flow "f" reads sink "end", but a sink has no outputs; read a task instead',
        ),
        (lambda f: f.output(""), 'flow "f": task name is empty; give it at least one letter'),
        (lambda f: f.output("a."), 'flow "f": output name is empty; give it at least one letter'),
    ],
)
def test_refused_at_once(use: Callable[[Any], object], message: str) -> None:
    with pytest.raises(FlowError) as refused:
        use(declared())
    assert str(refused.value) == message


def test_nothing_stays_behind_after_a_refusal() -> None:
    flow = declared()
    before = flow.graph()
    for attempt in (
        lambda: flow.map(ignore, "s", 7),  # type: ignore[call-overload]
        lambda: flow.map(ignore, "s", name="a"),
        lambda: flow.task(Splitter, "s", outputs=()),
        lambda: flow.constrain("0 ms", ["a"]),
    ):
        with pytest.raises(FlowError):
            attempt()
    assert flow.graph() == before


def test_graph_can_be_asked_for_again_after_more_was_declared() -> None:
    flow = declared()
    before = flow.graph()
    flow.output("a").sink(print)
    assert len(flow.graph().tasks) == len(before.tasks) + 1
    assert len(before.tasks) == 3
