"""Addressing of random flows: every replica of every receiver is reached, at one place, by one way."""

from collections import Counter

from hypothesis import given

from penstock.flow import Flow
from penstock.flow.layers import Layout, lay_out
from penstock.wire.envelope import Address
from penstock.wire.frames import REMOTE
from penstock.wire.routes import StreamRoute, routes
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
        reached = Counter(host(layout, route.address(replica)) for replica in range(route.pool))
        pool = layout.unit_of(stream.receiver).pool
        assert reached == Counter((stream.receiver, replica) for replica in range(pool))
        assert [host(layout, route.address(r))[1] for r in range(pool)] == list(range(pool))


@given(flows())
def test_envelopes_go_to_the_next_layer_to_a_relay_or_stay(flow: Flow) -> None:
    layout = lay_out(flow.graph())
    for stream in layout.graph.streams:
        route = routes(layout)[stream.name]
        sender, receiver = layout.unit_of(stream.sender), layout.unit_of(stream.receiver)
        for replica in range(route.pool):
            address = route.address(replica)
            target, place = route.next_stop(replica)
            if receiver == sender:
                assert (target, place) == (address.partition, address.place)
                assert stream.wiring == "forward"
                continue
            assert place == REMOTE
            if receiver.layer == sender.layer + 1:
                assert target == address.partition
            else:
                assert target == layout.layers[sender.layer + 1].relay
                between = layout.layers[sender.layer + 1 : receiver.layer]
                assert all(layer.relay is not None for layer in between)


@given(flows())
def test_forward_is_one_to_one(flow: Flow) -> None:
    layout = lay_out(flow.graph())
    for stream in layout.graph.streams:
        if stream.wiring == "forward":
            route = routes(layout)[stream.name]
            assert route.pool == layout.unit_of(stream.sender).pool
            assert [host(layout, route.address(r)) for r in range(route.pool)] == [
                (stream.receiver, r) for r in range(route.pool)
            ]


def test_a_stream_past_a_layer() -> None:
    flow = Flow("skipping")
    source = flow.source(Partitioned(2), name="source")
    middle = source.map(ignore, name="middle", parallelism=3)
    flow.sink(ignore, source, middle, name="end", parallelism=2)
    found = routes(lay_out(flow.graph()))
    assert found["source->end"] == StreamRoute(layer=2, first=0, pool=2, place=0, local=False, via=3)
    assert found["source->middle"].via is None
    assert [found["source->end"].next_stop(replica) for replica in (0, 1)] == [(3, REMOTE)] * 2
    assert found["middle->end"].next_stop(1) == (1, REMOTE)
