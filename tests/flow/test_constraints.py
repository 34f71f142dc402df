"""Latency constraints: sequences, filled paths, and what may not be constrained."""

from collections.abc import Callable
from datetime import timedelta
from itertools import pairwise
from typing import Any

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from penstock.flow import Flow, FlowError
from penstock.flow.graph import Constraint
from penstock.flow.paths import connected, paths_between
from tests.flow.random_flows import Partitioned, Splitter, flows, ignore


def primes() -> Flow:
    flow = Flow("primes")
    flow.source(Partitioned(2), name="numbers").map(ignore, name="is_prime").sink(ignore, name="sink")
    return flow


def diamond() -> Flow:
    flow = Flow("diamond")
    source = flow.source(Partitioned(1), name="s")
    left, right = source.map(ignore, name="left"), source.map(ignore, name="right")
    flow.sink(ignore, left, right, name="k")
    return flow


FULL = ("numbers->is_prime", "is_prime", "is_prime->sink")


def test_in_full() -> None:
    flow = primes()
    flow.constrain("20 ms", list(FULL), window="10 s", name="fast", statistic="mean")
    assert flow.graph().constraints == (Constraint("fast", FULL, 20.0, "mean", 10.0),)


def test_percentiles_and_shares_are_kept() -> None:
    flow = primes()
    flow.constrain("20 ms", FULL, statistic="p95", share=0.97)
    (made,) = flow.graph().constraints
    assert (made.statistic, made.share) == ("p95", 0.97)
    assert "c1 (default name): p95 of at most 20 ms in 0.97 of all 5 s (default) over" in flow.explain()


def test_defaults() -> None:
    flow = primes()
    flow.constrain(timedelta(milliseconds=20), FULL)
    assert flow.graph().constraints == (
        Constraint("c1", FULL, 20.0, "mean", 5.0, ("name", "statistic", "window")),
    )


@pytest.mark.parametrize(
    "sequence",
    [
        FULL,
        ("is_prime",),
        ("numbers->is_prime",),
        ("is_prime", "is_prime->sink", "sink"),
        ("numbers->is_prime", "is_prime", "is_prime->sink", "sink"),
        ("sink",),
    ],
)
def test_it_may_begin_and_end_with_a_task_or_a_stream(sequence: tuple[str, ...]) -> None:
    flow = primes()
    flow.constrain(0.02, sequence)
    assert flow.graph().constraints[0].sequence == sequence


def test_handles_stand_for_their_tasks() -> None:
    flow = Flow("f")
    a = flow.source(Partitioned(1), name="s").map(ignore, name="a")
    k = a.sink(ignore, name="k")
    flow.constrain("1 s", [a, "a->k", k])
    flow.constrain("1 s", start="s->a", end="s->a")
    assert [c.sequence for c in flow.graph().constraints] == [("a", "a->k", "k"), ("s->a",)]


def test_first_outputs_may_be_written_out() -> None:
    flow = Flow("f")
    split = flow.source(Partitioned(1), name="s").task(Splitter, name="a")
    split.sink(ignore, name="k")
    split["late"].sink(ignore, name="l")
    flow.constrain("1 s", ["a.hits->k"])
    flow.constrain("1 s", ["a", "a.late->l"])
    assert [c.sequence for c in flow.graph().constraints] == [("a->k",), ("a", "a.late->l")]


def test_start_and_end_fill_the_only_path() -> None:
    flow = diamond()
    flow.constrain("20 ms", start="s->left", end="k", name="left")
    flow.constrain("20 ms", start="right", end="right->k")
    assert [c.sequence for c in flow.graph().constraints] == [
        ("s->left", "left", "left->k", "k"),
        ("right", "right->k"),
    ]


def test_default_names_avoid_those_already_given() -> None:
    flow = primes()
    flow.constrain("1 s", ["is_prime"], name="c2")
    flow.constrain("1 s", ["is_prime"])
    flow.constrain("1 s", ["sink"])
    assert [c.name for c in flow.graph().constraints] == ["c2", "c1", "c3"]


WHERE = 'constraint "c1" of flow "primes"'


@pytest.mark.parametrize(
    ("use", "message"),
    [
        (lambda f: f.constrain("20 ms", []), "the sequence is empty; name at least one task or stream"),
        (
            lambda f: f.constrain("20 ms", "is_prime"),
            "the sequence must be a list of tasks and streams, not 'is_prime'",
        ),
        (
            lambda f: f.constrain("20 ms", [7]),
            'an element is a task, or a name such as "a" or "a->b", not 7',
        ),
        (lambda f: f.constrain("20 ms"), "give a sequence, or both start= and end="),
        (lambda f: f.constrain("20 ms", start="is_prime"), "give a sequence, or both start= and end="),
        (
            lambda f: f.constrain("20 ms", ["is_prime"], end="sink"),
            "give either a sequence or start= and end=, not both",
        ),
        (lambda f: f.constrain("0 ms", FULL), "latency: '0 ms' is zero; it must be longer"),
        (
            lambda f: f.constrain(-0.5, FULL),
            "latency: -0.5 is a negative duration; it must be 0 or more",
        ),
        (
            lambda f: f.constrain("20 parsecs", FULL),
            "latency: '20 parsecs' has the unknown unit 'parsecs'; use us, ms, s, min or h",
        ),
        (lambda f: f.constrain("20 ms", FULL, window=0), "window: 0 is zero; it must be longer"),
        (
            lambda f: f.constrain("20 ms", FULL, statistic="median"),
            'statistic must be "mean", "p95" or "p99", not \'median\'',
        ),
        (
            lambda f: f.constrain("20 ms", FULL, share=1),
            "share must be between 0.5 and 1, such as 0.99, not 1",
        ),
        (
            lambda f: f.constrain("20 ms", [Flow("g").source(Partitioned(1), name="x")]),
            'task "x" belongs to flow "g"; constrain it there',
        ),
    ],
)
def test_refused_at_once(use: Callable[[Any], object], message: str) -> None:
    with pytest.raises(FlowError) as refused:
        use(primes())
    assert str(refused.value) == f"{WHERE}: {message}"


@pytest.mark.parametrize(
    ("sequence", "message"),
    [
        (["prime"], ': there is no task "prime"; the tasks are numbers, is_prime, sink'),
        (
            ["numbers->sink"],
            ': there is no stream "numbers->sink"; the streams are numbers->is_prime, is_prime->sink',
        ),
        (
            ["numbers->is_prime", "is_prime->sink"],
            ': "numbers->is_prime" is not followed by "is_prime->sink"; after it may come only "is_prime"',
        ),
        (
            ["is_prime", "sink"],
            ': "is_prime" is not followed by "sink"; after it may come "is_prime->sink"',
        ),
        (
            ["sink", "is_prime->sink"],
            ': "sink" is not followed by "is_prime->sink"; after it may come nothing, for it is a sink',
        ),
        (
            ["numbers", "numbers->is_prime"],
            ' begins with source "numbers", which reads nothing and so has no latency; begin with its stream'
            ' "numbers->is_prime"',
        ),
    ],
)
def test_sequences_refused(sequence: list[str], message: str) -> None:
    flow = primes()
    flow.constrain("20 ms", sequence)
    with pytest.raises(FlowError) as refused:
        flow.graph()
    assert str(refused.value) == WHERE + message


def test_no_path() -> None:
    flow = primes()
    flow.constrain("20 ms", start="sink", end="is_prime")
    with pytest.raises(FlowError) as refused:
        flow.graph()
    assert str(refused.value) == f'{WHERE}: no path leads from "sink" to "is_prime"; check their order'


def test_several_paths() -> None:
    flow = diamond()
    flow.map(ignore, "left", name="x").sink(print)
    flow.map(ignore, "x", name="y").sink(ignore, name="z")
    flow.map(ignore, "y", "left", name="w").sink(ignore, name="v")
    flow.constrain("20 ms", start="left", end="w", name="c")
    with pytest.raises(FlowError) as refused:
        flow.graph()
    assert str(refused.value) == (
        'constraint "c" of flow "diamond": several paths lead from "left" to "w", among them'
        " [left, left->x, x, x->y, y, y->w, w] and [left, left->w, w]; give the whole sequence"
    )


def test_two_constraints_may_share_tasks_but_no_stream() -> None:
    flow = primes()
    flow.constrain("20 ms", ["numbers->is_prime", "is_prime"])
    flow.constrain("20 ms", ["is_prime", "is_prime->sink"])
    assert len(flow.graph().constraints) == 2
    flow.constrain("20 ms", ["is_prime->sink", "sink"])
    with pytest.raises(FlowError) as refused:
        flow.graph()
    assert str(refused.value) == (
        'constraints "c2" and "c3" of flow "primes" share stream "is_prime->sink";'
        " let only one of them contain it"
    )


def test_all_constraints_have_one_window() -> None:
    flow = primes()
    flow.constrain("20 ms", ["is_prime"])
    flow.constrain("20 ms", ["sink"], window="10 s")
    with pytest.raises(FlowError) as refused:
        flow.graph()
    assert str(refused.value) == (
        'constraints "c1" and "c2" of flow "primes" have windows of 5 s and 10 s;'
        " give all constraints the same window"
    )


def test_two_constraints_of_one_name() -> None:
    flow = primes()
    flow.constrain("20 ms", ["is_prime"], name="c")
    with pytest.raises(FlowError) as refused:
        flow.constrain("20 ms", ["sink"], name="c")
    assert str(refused.value) == 'flow "primes" has two constraints "c"; give one of them another name='


@given(flows(most_tasks=5), st.data())
def test_filled_exactly_if_there_is_one_path(flow: Flow, data: st.DataObject) -> None:
    graph = flow.graph()
    elements = [task.name for task in graph.tasks if task.kind != "source"]
    elements += [stream.name for stream in graph.streams]
    start, end = data.draw(st.sampled_from(elements)), data.draw(st.sampled_from(elements))
    flow.constrain("20 ms", start=start, end=end)
    paths = paths_between(graph, start, end, limit=2)
    if len(paths) == 1:
        assert flow.graph().constraints[0].sequence == paths[0]
    else:
        with pytest.raises(FlowError, match="paths? leads? from" if paths else "no path leads from"):
            flow.graph()


@given(flows(most_tasks=5), st.data())
def test_any_sequence_is_connected_or_refused(flow: Flow, data: st.DataObject) -> None:
    graph = flow.graph()
    elements = [task.name for task in graph.tasks] + [stream.name for stream in graph.streams]
    sequence = data.draw(st.lists(st.sampled_from(elements), min_size=1, max_size=4))
    assume("->" in sequence[0] or graph.task(sequence[0]).kind != "source")
    flow.constrain("20 ms", sequence)
    if all(connected(graph, a, b) for a, b in pairwise(sequence)):
        assert flow.graph().constraints[0].sequence == tuple(sequence)
    else:
        with pytest.raises(FlowError, match="is not followed by"):
            flow.graph()
