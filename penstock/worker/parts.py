"""The body of an envelope: the items of a channel, coded, and cut where they do not fit."""

from typing import Any, NamedTuple, TypeAlias

import msgspec

from penstock.flow.record import Metadata
from penstock.wire.codecs import Coder
from penstock.wire.envelope import Tag
from penstock.wire.ids import ItemId

ITEM_LIMIT_BYTES = 64 << 20
"""An item larger than this cannot travel: a row is held in memory several times on its way."""

Ids: TypeAlias = list[ItemId | None] | None
Described: TypeAlias = list[Metadata | None] | None


class Unshippable(Exception):  # noqa: N818 - said of an item
    """An item that cannot be put into an envelope."""


class Part(NamedTuple):
    """Items that go into one envelope, with their ids, tags and metadata."""

    items: list[Any]
    ids: Ids
    tags: list[Tag]
    metadata: Described = None

    def cut(self, start: int, end: int) -> "Part":
        """The items from `start` up to `end`."""
        return Part(
            self.items[start:end],
            None if self.ids is None else self.ids[start:end],
            [
                msgspec.structs.replace(tag, item=tag.item - start)
                for tag in self.tags
                if start <= tag.item < end
            ],
            None if self.metadata is None else self.metadata[start:end],
        )

    def pieces(self, most: int) -> "list[Part]":
        """So many that follow each other, or as many as there are items; as even as can be."""
        count = len(self.items)
        width = min(most, count)
        return [self.cut(n * count // width, (n + 1) * count // width) for n in range(width)]


def dump(items: list[Any], coder: Coder, stream: str) -> bytes:
    """Their body; `Unshippable` if it is too large."""
    body = coder.dump(items)
    if len(body) > ITEM_LIMIT_BYTES:
        raise Unshippable(
            f"an item of {len(body) >> 20} MiB is larger than the {ITEM_LIMIT_BYTES >> 20} MiB"
            f" that stream {stream} carries; send a reference to it, or parts of it"
        )
    return body
