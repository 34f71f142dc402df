"""Items that wait for the state of their keys, which comes from another replica; all others go on."""

from collections.abc import Callable, Collection, Sequence
from typing import Final, NamedTuple

from penstock.flow.graph import ITEM_ID, Stream
from penstock.wire.codecs import Unread
from penstock.wire.envelope import Envelope, picked
from penstock.wire.keys import key_group

LIMIT_BYTES: Final = 8 << 20
"""When more waits than this, sources are to wait, too."""


GroupOf = Callable[[Envelope, int], int]
"""The group of the key of an item, by its place in an envelope."""


class Held(NamedTuple):
    """Of an envelope the items that wait, and when it came."""

    envelope: Envelope
    arrived_ns: int


class Waiting:
    """Before the first task of a worker; `streams` are those of the flow."""

    def __init__(self, streams: Sequence[Stream]) -> None:
        self._group_of = [_grouping(stream) for stream in streams]
        self._groups: Collection[int] = ()
        self.is_for_all = False
        """Whether items wait whatever their key."""
        self._held: list[Held] = []
        self._bytes = 0

    def begin(self, groups: Collection[int], *, everything: bool = False) -> None:
        """Items of these groups wait from now on, or all."""
        self._groups = groups
        self.is_for_all = everything

    def end(self) -> list[Held]:
        """Nothing waits any longer; what did, in the order in which it came."""
        held, self._held = self._held, []
        self.begin(())
        self._bytes = 0
        return held

    def __bool__(self) -> bool:
        """Whether any item has to wait."""
        return bool(self._groups)

    @property
    def is_full(self) -> bool:
        """Whether too much waits."""
        return self._bytes > LIMIT_BYTES

    def sift(self, envelope: Envelope, arrived_ns: int, size: int) -> Envelope | None:
        """The items that need not wait, None if all have to; `size` is that of the envelope in bytes."""
        group_of = self._group_of[envelope.stream]
        count = len(envelope.items)
        if self.is_for_all:
            held = [*range(count)]
        elif group_of is None:
            held = []
        else:
            held = [place for place in range(count) if self._waits(group_of, envelope, place)]
        if not held:
            return envelope
        self._bytes += size * len(held) // count
        if len(held) == count:
            self._held.append(Held(envelope, arrived_ns))
            return None
        self._held.append(Held(picked(envelope, held), arrived_ns))
        waits = {*held}
        return picked(envelope, [place for place in range(count) if place not in waits])

    def _waits(self, group_of: GroupOf, envelope: Envelope, place: int) -> bool:
        """One without a key, which its codec could not read or whose key raises, fails as it would anyway."""
        if type(envelope.items[place]) is Unread:
            return False
        try:
            return group_of(envelope, place) in self._groups
        except Exception:  # noqa: BLE001 - users' code may raise anything
            return False


def _grouping(stream: Stream) -> GroupOf | None:
    """How to find the group of an item, as its sender did; None if the stream has no keys."""
    key = stream.key
    if stream.wiring != "key" or key is None:
        return None
    if key is not ITEM_ID:
        return lambda envelope, place: key_group(key(envelope.items[place]))
    own = 0 if stream.keeps_ids else 1  # what the stream has added to the id of the item that its sender had

    def by_id(envelope: Envelope, place: int) -> int:
        item_id = None if envelope.ids is None else envelope.ids[place]
        return key_group(None if item_id is None else item_id[: len(item_id) - own])

    return by_id
