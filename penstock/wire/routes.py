"""Addressing: where the receivers of each stream are, as the driver computes and a worker uses it. Pure."""

import msgspec

from penstock.flow.layers import Layout
from penstock.wire.envelope import Address
from penstock.wire.frames import REMOTE


class StreamRoute(msgspec.Struct, frozen=True):
    """The receiving replicas [first, first + pool) of a layer; `via` is the relay if layers are skipped."""

    layer: int
    first: int
    pool: int
    place: int
    local: bool
    via: int | None = None

    @property
    def is_direct(self) -> bool:
        """Whether the next shuffle takes an envelope to its receiver."""
        return not self.local and self.via is None

    def address(self, replica: int) -> Address:
        """Where a replica is."""
        return Address(self.layer, self.first + replica, self.place)

    def next_stop(self, replica: int) -> tuple[int, int]:
        """The partition to hand its envelopes to, and the place there (REMOTE: they leave this one)."""
        partition = self.first + replica
        if self.local:
            return partition, self.place
        return partition if self.via is None else self.via, REMOTE


class MarkedStream(msgspec.Struct, frozen=True):
    """A stream by which epoch marks go: the bridge must know who may send to whom.

    `senders` is the pool of the sender; where a replica sends to its `twin` alone, that is its only channel.
    """

    name: str
    number: int
    sender: str
    receiver: str
    senders: int
    twin: bool


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
            place=layout.place_of(stream.receiver),
            local=layout.is_local(stream),
            via=layout.relay_of(sender.layer + 1) if skips else None,
        )
    return found


def marked_streams(layout: Layout) -> list[MarkedStream]:
    """By which channels epoch marks go: those of every stream, from the whole pool of its sender."""
    return [
        MarkedStream(
            name=stream.name,
            number=number,
            sender=stream.sender,
            receiver=stream.receiver,
            senders=layout.unit_of(stream.sender).pool,
            twin=stream.wiring == "forward",
        )
        for number, stream in enumerate(layout.graph.streams)
    ]
