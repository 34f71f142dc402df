"""Placement: layers, partitions, relays and pools."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.flow import Flow, FlowError, elastic
from penstock.flow.layers import Layer, Layout, Unit, lay_out, max_slots
from tests.flow.random_flows import Partitioned, flows, ignore


def branched() -> Flow:
    """s -> a -> k and s -> k, so that the second skips the layer of a; b follows s in its partitions."""
    flow = Flow("branched")
    source = flow.source(Partitioned(2), name="s")
    a = source.map(ignore, name="a", parallelism=elastic(1, 16))
    flow.sink(ignore, a, source.by_key(hash), name="k", parallelism=3)
    source.forward().sink(ignore, name="b")
    return flow


def test_a_layout_in_full() -> None:
    assert lay_out(branched().graph()).layers == (
        Layer(0, (Unit(("s", "b"), 0, 0, 2, 2),), None, 2),
        Layer(1, (Unit(("a",), 1, 0, 8, 1),), 8, 9),
        Layer(2, (Unit(("k",), 2, 0, 3, 3),), None, 3),
    )


def test_addresses() -> None:
    layout = lay_out(branched().graph())
    assert layout.slots == 14
    assert max_slots(layout.graph) == 22
    assert layout.place_of("s") == 0
    assert layout.place_of("b") == 1
    assert layout.is_local("s->b")
    assert not layout.is_local(layout.graph.stream("s->a"))
    assert [layout.relay_of(index) for index in range(3)] == [None, 8, None]
    assert layout.partition_of("k", 2) == 2
    assert layout.abreast_of("b") == ("s", "b")
    assert layout.abreast_of("a") == ("a",)


def test_two_units_share_a_layer() -> None:
    flow = Flow("f")
    source = flow.source(Partitioned(1), name="s")
    source.sink(ignore, name="x", parallelism=2)
    source.sink(ignore, name="y", parallelism=3)
    layout = lay_out(flow.graph())
    assert [layout.partition_of("x", 1), layout.partition_of("y", 0), layout.partition_of("y", 2)] == [
        1,
        2,
        4,
    ]


def test_smaller_pool_bounds_the_active_replicas_and_a_larger_one_restores_them() -> None:
    flow = Flow("f")
    flow.source(Partitioned(1), name="s").sink(ignore, name="k", parallelism=elastic(1, 8, initial=4))
    layout = lay_out(flow.graph())
    small = layout.with_pools({"k": 2})
    assert small.unit_of("k") == Unit(("k",), 1, 0, 2, 2)
    assert small.with_pools({"k": 8}).unit_of("k") == Unit(("k",), 1, 0, 8, 4)


def test_forward_tasks_in_different_units_keep_equal_pools() -> None:
    flow = Flow("f")
    source = flow.source(Partitioned(1), name="s")
    a = source.map(ignore, name="a", parallelism=elastic(1, 8))
    b = a.map(ignore, name="b", parallelism=2)
    flow.sink(ignore, a.forward(), b, name="k")
    layout = lay_out(flow.graph()).with_pools({"k": 5})
    assert not layout.is_local("a->k")
    assert [layout.unit_of(name).pool for name in ("a", "b", "k")] == [5, 2, 5]


@pytest.mark.parametrize(
    ("pools", "message"),
    [
        (
            {"a": 17},
            'pool of 17 for task "a" of flow "branched" is outside 1 to 16;'
            " raise its max or choose a pool within it",
        ),
        (
            {"a": 0},
            'pool of 0 for task "a" of flow "branched" is outside 1 to 16;'
            " raise its max or choose a pool within it",
        ),
        (
            {"a": True},
            'pool of True for task "a" of flow "branched" is not a whole number; give one within 1 to 16',
        ),
        (
            {"s": 1},
            'pool of 1 for source "s" of flow "branched": the source was declared with always 2 replicas;'
            " give it another range, as in replicas=elastic(1, 4)",
        ),
        (
            {"b": 1},
            'pool of 1 for sink "b" of flow "branched": forward streams connect it with source "s": the'
            " source was declared with always 2 replicas; give it another range, as in"
            " replicas=elastic(1, 4)",
        ),
        ({"c": 1}, 'flow "branched" has no task "c"; its tasks are s, a, k, b'),
    ],
)
def test_pools_refused(pools: dict[str, int], message: str) -> None:
    with pytest.raises(FlowError) as refused:
        lay_out(branched().graph()).with_pools(pools)
    assert str(refused.value) == message


def test_pools_that_contradict_each_other() -> None:
    flow = Flow("f")
    a = flow.source(Partitioned(1), name="s").map(ignore, name="a", parallelism=elastic(1, 8))
    a.forward().sink(ignore, name="k")
    with pytest.raises(FlowError) as refused:
        lay_out(flow.graph()).with_pools({"a": 2, "k": 3})
    assert str(refused.value) == (
        'flow "f": pools of 2 for task "a" and 3 for task "k", but forward streams connect them;'
        " give both the same pool"
    )


def test_unknown_replicas_and_tasks_are_refused() -> None:
    layout = lay_out(branched().graph())
    with pytest.raises(FlowError) as refused:
        layout.partition_of("k", 3)
    assert str(refused.value) == (
        'task "k" of flow "branched" has no replica 3; its pool holds replicas 0 to 2'
    )
    with pytest.raises(FlowError, match='flow "branched" has no task "x"'):
        layout.unit_of("x")


def test_another_bound_changes_nothing_else() -> None:
    flow = branched()
    source = flow.graph().tasks[0].name
    stream = flow.graph().outputs_of(source)[0].name
    flow.constrain("20 ms", [stream], name="soon")
    layout = lay_out(flow.graph())
    tightened = layout.with_bound("soon", 5.0)
    assert [constraint.latency_ms for constraint in tightened.graph.constraints] == [5.0]
    assert tightened.with_bound("soon", 20.0) == layout
    with pytest.raises(FlowError, match=r'has no constraint "late"; its constraints are soon'):
        layout.with_bound("late", 5.0)
    with pytest.raises(FlowError, match=r'bound of 0 ms for constraint "soon".* give one above 0 ms'):
        layout.with_bound("soon", 0.0)
    with pytest.raises(FlowError, match="it has no constraint"):
        lay_out(branched().graph()).with_bound("soon", 5.0)


def check_layout(layout: Layout) -> None:
    """Everything that must hold of any layout."""
    graph = layout.graph
    units = [unit for layer in layout.layers for unit in layer.units]
    order = {task.name: position for position, task in enumerate(graph.tasks)}
    assert sorted(order) == sorted(name for unit in units for name in unit.tasks)
    for index, layer in enumerate(layout.layers):
        assert layer.index == index
        taken = [p for unit in layer.units for p in range(unit.first, unit.first + unit.pool)]
        taken += [] if layer.relay is None else [layer.relay]
        assert taken == list(range(layer.partitions))
        skipping = [
            stream
            for stream in graph.streams
            if layout.unit_of(stream.sender).layer < index < layout.unit_of(stream.receiver).layer
        ]
        assert (layer.relay is not None) == bool(skipping)
    for unit in units:
        assert sorted(unit.tasks, key=order.__getitem__) == list(unit.tasks)
        assert 1 <= unit.initial <= unit.pool
        feeding = [
            layout.unit_of(stream.sender).layer
            for name in unit.tasks
            for stream in graph.inputs_of(name)
            if not layout.is_local(stream)
        ]
        assert unit.layer == 1 + max(feeding, default=-1)
        assert (unit.layer == 0) == any(graph.task(name).kind == "source" for name in unit.tasks)
    for stream in graph.streams:
        apart = stream.wiring == "forward" and not layout.is_local(stream)
        assert (layout.why_apart(stream) is not None) == apart
    assert layout.slots == sum(unit.pool for unit in units) + sum(
        layer.relay is not None for layer in layout.layers
    )


@given(flows())
def test_layouts_of_random_flows(flow: Flow) -> None:
    graph = flow.graph()
    layout = lay_out(graph)
    check_layout(layout)
    assert lay_out(graph) == layout
    assert layout.slots <= max_slots(graph)
    for task in graph.tasks:
        unit = layout.unit_of(task.name)
        assert unit.tasks[layout.place_of(task.name)] == task.name
        assert (unit.pool, unit.initial) == (task.parallelism.pool, task.parallelism.initial)
        assert [layout.partition_of(task.name, i) for i in range(unit.pool)] == list(
            range(unit.first, unit.first + unit.pool)
        )


@given(flows(), st.data())
def test_pools_change_nothing_but_partition_ids(flow: Flow, data: st.DataObject) -> None:
    layout = lay_out(flow.graph())
    pools: dict[str, int] = {}
    for task in layout.graph.tasks:
        abreast = layout.abreast_of(task.name)
        sources = any(layout.graph.task(name).kind == "source" for name in abreast)
        if not sources and not pools.keys() & set(abreast) and data.draw(st.booleans()):
            pools[task.name] = data.draw(st.integers(1, task.parallelism.max))
    changed = layout.with_pools(pools)
    check_layout(changed)
    expected = {name: pool for task, pool in pools.items() for name in layout.abreast_of(task)}
    for task in layout.graph.tasks:
        before, after = layout.unit_of(task.name), changed.unit_of(task.name)
        assert (after.tasks, after.layer) == (before.tasks, before.layer)
        assert after.pool == expected.get(task.name, before.pool)
    originals = {task.name: task.parallelism.pool for task in layout.graph.tasks}
    assert changed.with_pools(originals) == layout
