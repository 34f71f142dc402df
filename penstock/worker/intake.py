"""How a task takes the items of an envelope: what it sends stems from an item, and tagged ones are timed."""

from collections.abc import Sequence
from typing import Any

from penstock.wire.codecs import Unread
from penstock.wire.envelope import Envelope, Tag
from penstock.worker.outbox import Outbox
from penstock.worker.runner import ItemRunner, Runner


def turn_to(head: Runner, outbox: Outbox, envelope: Envelope, index: int, tag: Tag | None = None) -> None:
    """The item that comes now is this one of the envelope."""
    item_id = None if envelope.ids is None else envelope.ids[index]
    metadata = None if envelope.metadata is None else envelope.metadata[index]
    head.context.item_id = item_id
    outbox.begin_item(item_id, None if tag is None else tag.origin_ns, metadata)


class Intake:
    """The input of a worker's first task; `names` are those of the flow's streams."""

    def __init__(self, head: ItemRunner, outbox: Outbox, names: Sequence[str]) -> None:
        self._head = head
        self._outbox = outbox
        self._names = names

    def begin(self, envelope: Envelope) -> None:
        """The items that come now are those of this envelope."""
        self._head.context.input = self._names[envelope.stream]

    def process(self, envelope: Envelope, arrived_ns: int) -> None:
        """Run the task on all items."""
        self.begin(envelope)
        if envelope.ids is None and envelope.metadata is None and not envelope.unread:
            self._process_tagged(envelope, arrived_ns)
        else:
            tags = {tag.item: tag for tag in envelope.tags}
            together = self._outbox.together
            for index in range(len(envelope.items)):
                self._process_one(envelope, index, tags.get(index), arrived_ns)
                if index % together == together - 1:
                    self._outbox.let_go()
        self._head.settle()

    def process_one(self, envelope: Envelope, index: int, tag: Tag | None, arrived_ns: int) -> None:
        """Run the task on one item, and what is chained to it on what came of it."""
        self._process_one(envelope, index, tag, arrived_ns)
        self._head.settle()

    def _process_one(self, envelope: Envelope, index: int, tag: Tag | None, arrived_ns: int) -> None:
        item = envelope.items[index]
        head = self._head
        turn_to(head, self._outbox, envelope, index, tag)
        if envelope.unread and type(item) is Unread:
            head.refuse(item)
        elif tag is None:
            head.step(item)
        else:
            head.time_item(envelope, tag, arrived_ns, item)

    def _process_tagged(self, envelope: Envelope, arrived_ns: int) -> None:
        """The items between two tagged ones need no care."""
        items, start = envelope.items, 0
        head, outbox = self._head, self._outbox
        outbox.begin_item(None, None)
        for tag in envelope.tags:
            if tag.item > start:
                self._steps(items[start : tag.item])
            outbox.origin_ns = tag.origin_ns
            head.time_item(envelope, tag, arrived_ns, items[tag.item])
            outbox.origin_ns = None
            start = tag.item + 1
        if start < len(items):
            self._steps(items[start:] if start else items)

    def _steps(self, items: list[Any]) -> None:
        """What comes of the first of many items does not wait for the last."""
        together = self._outbox.together
        if len(items) <= together:
            self._head.steps(items)
            return
        for start in range(0, len(items), together):
            self._head.steps(items[start : start + together])
            self._outbox.let_go()
