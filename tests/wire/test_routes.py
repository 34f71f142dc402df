"""Addressing of random flows: every replica of every receiver is reached, at one place, by one way."""

from collections import Counter

import msgspec
from hypothesis import given

from penstock.flow import Flow
from penstock.flow.layers import Layout, lay_out
from penstock.wire.envelope import Address
from penstock.wire.frames import REMOTE
from penstock.wire.routes import Settings, StreamRoute, routes
from tests.flow.random_flows import Partitioned, flows, ignore


def host(layout: Layout, address: Address) -> tuple[str, int]:
    """The task and replica that an address means, found as the bridge finds them."""
    layer = layout.layers[address.layer]
    (unit,) = [u for u in layer.units if u.first <= address.partition < u.first + u.pool]
    return unit.tasks[address.place], address.partition - unit.first


@given(flows())
def test_every_replica_is_reached_exactly_once(flow: Flow) -> None:
    layout = lay_out(flow.graph())
    found = routes(layout)
    assert set(found) == {stream.name for stream in layout.graph.streams}
    for stream in layout.graph.streams:
        route = found[stream.name]
        reached = Counter(host(layout, route.channel(replica).address) for replica in range(route.pool))
        pool = layout.unit_of(stream.receiver).pool
        assert reached == Counter((stream.receiver, replica) for replica in range(pool))
        assert [host(layout, route.channel(r).address)[1] for r in range(pool)] == list(range(pool))


@given(flows())
def test_envelopes_go_to_the_next_layer_to_a_relay_or_stay(flow: Flow) -> None:
    layout = lay_out(flow.graph())
    for stream in layout.graph.streams:
        route = routes(layout)[stream.name]
        sender, receiver = layout.unit_of(stream.sender), layout.unit_of(stream.receiver)
        for replica in range(route.pool):
            channel = route.channel(replica)
            if receiver == sender:
                assert (channel.target, channel.place) == (channel.address.partition, channel.address.place)
                assert stream.wiring == "forward"
                continue
            assert channel.place == REMOTE
            if receiver.layer == sender.layer + 1:
                assert channel.target == channel.address.partition
            else:
                assert channel.target == layout.layers[sender.layer + 1].relay
                between = layout.layers[sender.layer + 1 : receiver.layer]
                assert all(layer.relay is not None for layer in between)


@given(flows())
def test_forward_is_one_to_one(flow: Flow) -> None:
    layout = lay_out(flow.graph())
    for stream in layout.graph.streams:
        if stream.wiring == "forward":
            route = routes(layout)[stream.name]
            assert route.pool == layout.unit_of(stream.sender).pool
            assert [host(layout, route.channel(r).address) for r in range(route.pool)] == [
                (stream.receiver, r) for r in range(route.pool)
            ]


@given(flows())
def test_settings_survive_their_way_to_the_workers(flow: Flow) -> None:
    layout = lay_out(flow.graph())
    settings = Settings(
        routes=routes(layout),
        active={task.name: task.parallelism.initial for task in layout.graph.tasks},
        lifetime_ms={stream.name: 2.5 for stream in layout.graph.streams},
        sampling=0.1,
    )
    assert msgspec.json.decode(msgspec.json.encode(settings), type=Settings) == settings


def test_a_stream_past_a_layer() -> None:
    flow = Flow("skipping")
    source = flow.source(Partitioned(2), name="source")
    middle = source.map(ignore, name="middle", parallelism=3)
    flow.sink(ignore, source, middle, name="end", parallelism=2)
    found = routes(lay_out(flow.graph()))
    assert found["source->end"] == StreamRoute(layer=2, first=0, pool=2, place=0, local=False, via=3)
    assert found["source->middle"].via is None
    assert found["middle->end"].channel(1).target == 1
