"""Orders survive their way: written by the driver, handed on by the bridge, read by a worker."""

import json

import msgspec
from hypothesis import given
from hypothesis import strategies as st

from penstock.flow import Flow
from penstock.flow.layers import lay_out
from penstock.stats.clock_offset import Exchange
from penstock.wire.orders import Link, Position, SourceOrder, StartOrder, Switches
from penstock.wire.routes import routes
from tests.flow.random_flows import flows

offsets = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**53), 2**53) | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=5,
)
positions = st.builds(Position, st.integers(0, 2**62), offsets, done=st.booleans())
by_split = st.dictionaries(st.text(), positions, max_size=3)
sources = st.builds(SourceOrder, by_split, by_split, st.integers(-(2**62), 2**62))
moments_ns = st.integers(0, 2**62)
exchanges = st.builds(Exchange, moments_ns, moments_ns, moments_ns, moments_ns)
links = st.builds(Link, st.none() | exchanges, st.none() | moments_ns)


def switches_of(flow: Flow, version: int) -> Switches:
    layout = lay_out(flow.graph())
    return Switches(
        routes=routes(layout),
        active={task.name: task.parallelism.initial for task in layout.graph.tasks},
        lifetime_ms={stream.name: 2.5 for stream in layout.graph.streams},
        sampling=0.1,
        chains=[["a", "b"]],
        version=version,
    )


@given(
    flows(),
    st.integers(0, 2**31),
    st.integers(0, 2**31),
    st.none() | sources,
    links,
)
def test_the_start_of_a_batch(
    flow: Flow, version: int, batch: int, source: SourceOrder | None, link: Link
) -> None:
    order = StartOrder("task", 3, batch, switches_of(flow, version), source, link)
    assert msgspec.json.decode(msgspec.json.encode(order), type=StartOrder) == order


@given(flows(), st.integers(0, 2**31))
def test_switches_that_the_bridge_puts_into_the_start_of_a_batch(flow: Flow, version: int) -> None:
    """It never reads them: it writes the text it has from the driver into the text of its own order."""
    switches = switches_of(flow, version)
    text = msgspec.json.encode(switches).decode()
    start = f'{{"task":"t","replica":0,"batch":7,"switches":{text}}}'
    assert msgspec.json.decode(start, type=StartOrder) == StartOrder("t", 0, 7, switches)


def test_what_was_not_said_has_a_meaning() -> None:
    text = {"routes": {}, "active": {}, "lifetime_ms": {}, "sampling": 0.0}
    switches = msgspec.json.decode(json.dumps(text), type=Switches)
    assert (switches.measure_every_s, switches.chains, switches.version) == (1.0, [], 0)
    assert msgspec.json.decode(b'{"ordinal": 3, "offset": null}', type=Position) == Position(
        3, None, done=False
    )
