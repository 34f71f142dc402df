"""Bounds that the way between the tasks alone exceeds."""

import pytest

from penstock.control.control_plan import DEFAULT_POLICY
from penstock.flow import Flow
from penstock.flow.layers import lay_out
from penstock.flow.reach import hops, lasting_batches, out_of_reach
from tests.flow.random_flows import Partitioned


def flow(bound: str, lifetime: str = "0 ms") -> Flow:
    """Two hops; the sink stays in the partition of its sender."""
    made = Flow("f")
    numbers = made.source(Partitioned(1), name="numbers").batched(lifetime)
    first = numbers.map(abs, name="first").batched(lifetime)
    first.map(abs, name="second").forward().sink(print, name="out")
    made.constrain(bound, start="numbers->first", end="second->out", name="quick")
    return made


def test_streams_that_stay_in_their_partition_cost_nothing() -> None:
    graph = flow("1 s").graph()
    assert hops(lay_out(graph), graph.constraints[0]) == 2


def test_an_item_that_is_relayed_crosses_every_layer() -> None:
    made = Flow("f")
    numbers = made.source(Partitioned(1), name="numbers")
    made.sink(print, numbers.map(abs, name="a").map(abs, name="b"), numbers, name="out")
    made.constrain("1 s", ["numbers->out"])
    graph = made.graph()
    assert hops(lay_out(graph), graph.constraints[0]) == 3


@pytest.mark.parametrize(("bound", "reachable"), [("0.2 ms", True), ("0.15 ms", False)])
def test_a_bound_below_the_way_is_told(bound: str, reachable: bool) -> None:
    graph = flow(bound).graph()
    told = out_of_reach(lay_out(graph), graph.constraints[0])
    assert (told is None) is reachable
    if told is not None:
        assert told.startswith("constraint quick cannot be kept: its 2 hops take 200 us on an idle machine,")
        assert "more than its bound of 150 us" in told
        assert told in flow(bound).explain()


def test_lifetimes_that_nobody_shortens_are_told() -> None:
    graph = flow("20 ms", "30 ms").graph()
    told = lasting_batches(lay_out(graph), graph.constraints[0])
    assert told is not None
    assert "items wait for about 30 ms in envelopes, more than its bound of 20 ms" in told
    roomy = flow("30 ms", "30 ms").graph()
    assert lasting_batches(lay_out(roomy), roomy.constraints[0]) is None


def test_explain_names_the_default_policy() -> None:
    assert f"kept by policy {DEFAULT_POLICY} (default)" in flow("1 s").explain()
