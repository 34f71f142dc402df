"""Tasks with async bodies: their settings, and what they may be chained to."""

from typing import Any

import pytest

from penstock.flow import Flow, FlowError, Output
from penstock.flow.chains import all_chains, pipelines
from penstock.flow.layers import lay_out
from tests.flow.random_flows import Partitioned, ignore


async def fetch(item: Any) -> Any: ...


def source() -> Output[Any]:
    return Flow("f").source(Partitioned(1), name="source")


def refusal(body: Any, **settings: Any) -> str:
    with pytest.raises(FlowError) as refused:
        source().map(body, name="a", **settings)
    return str(refused.value)


def test_an_async_body_has_a_concurrency_and_keeps_the_order() -> None:
    output = source()
    output.map(fetch).map(fetch, name="more", concurrency=7, ordered=False).sink(ignore)
    graph = output.flow.graph()
    assert (graph.task("fetch").concurrency, graph.task("fetch").ordered) == (20, True)
    assert (graph.task("more").concurrency, graph.task("more").ordered) == (7, False)
    assert graph.task("ignore").concurrency is None
    text = output.flow.explain()
    assert "; async, concurrency 20 (default); ordered True (default)\n" in text
    assert "; async, concurrency 7; ordered False\n" in text


@pytest.mark.parametrize("setting", ["concurrency", "ordered"])
def test_a_plain_body_has_neither(setting: str) -> None:
    assert refusal(ignore, **{setting: 1}) == (
        f'task "a" of flow "f": {setting} is for calls that are awaited; make the body async, or remove it'
    )


@pytest.mark.parametrize("wrong", [0, -1, True, "20", 1.5])
def test_concurrency_is_a_number(wrong: Any) -> None:
    expected = f'task "a" of flow "f": concurrency must be a whole number of at least 1, not {wrong!r}'
    assert refusal(fetch, concurrency=wrong) == expected


def test_ordered_is_yes_or_no() -> None:
    assert refusal(fetch, ordered=1) == (
        'task "a" of flow "f": ordered must be True or False, not 1; False sends results as they come'
    )


def test_an_async_task_can_only_begin_a_chain() -> None:
    output = source()
    a = output.map(ignore, name="a").forward().map(fetch, name="b")
    a.forward().map(ignore, name="c").forward().sink(ignore, name="out")
    layout = lay_out(output.flow.graph())
    assert pipelines(layout) == [["a"], ["b", "c", "out"]]
    assert all_chains(layout, [["b", "c"]]) == [["a"], ["b", "c"], ["out"]]
    with pytest.raises(FlowError) as refused:
        all_chains(layout, [["a", "b"]])
    assert str(refused.value) == 'a -> b is no chain: task "b" is async, so it can only be the first of one'
