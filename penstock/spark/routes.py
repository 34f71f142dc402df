"""Addressing: where the receivers of each stream are, as the driver computes and a worker uses it. Pure."""

import msgspec

from penstock.flow.layers import Layout
from penstock.spark.envelope import Address
from penstock.spark.outbox import REMOTE, Channel


class StreamRoute(msgspec.Struct, frozen=True):
    """The receiving replicas [first, first + pool) of a layer; `via` is the relay if layers are skipped."""

    layer: int
    first: int
    pool: int
    stage: int
    local: bool
    via: int | None = None

    def channel(self, replica: int) -> Channel:
        """An empty channel to a replica."""
        partition = self.first + replica
        address = Address(self.layer, partition, self.stage)
        if self.local:
            return Channel(address, partition, self.stage)
        return Channel(address, partition if self.via is None else self.via, REMOTE)


class Settings(msgspec.Struct, frozen=True):
    """What a worker must know of the running flow: addresses, and the switches that may change any time."""

    routes: dict[str, StreamRoute]
    active: dict[str, int]
    lifetime_ms: dict[str, float]
    sampling: float
    measure_every_s: float = 1.0
    chains: list[list[str]] = []


def routes(layout: Layout) -> dict[str, StreamRoute]:
    """The route of every stream of a placed graph."""
    found = {}
    for stream in layout.graph.streams:
        sender, receiver = layout.unit_of(stream.sender), layout.unit_of(stream.receiver)
        skips = receiver.layer > sender.layer + 1
        found[stream.name] = StreamRoute(
            layer=receiver.layer,
            first=receiver.first,
            pool=receiver.pool,
            stage=layout.stage_of(stream.receiver),
            local=layout.is_local(stream),
            via=layout.relay_of(sender.layer + 1) if skips else None,
        )
    return found
