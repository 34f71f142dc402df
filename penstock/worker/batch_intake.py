"""How a task that takes lists gets its input: the envelopes at hand together, until a batch is full."""

import time
from collections.abc import Sequence
from typing import NamedTuple

import msgspec

from penstock.wire.codecs import Unread
from penstock.wire.envelope import Envelope, Tag, picked
from penstock.worker.batch_runner import BatchRunner
from penstock.worker.intake import Intake, turn_to
from penstock.worker.outbox import Outbox
from penstock.worker.runner import ItemRunner, Runner


class _Gathered(NamedTuple):
    envelope: Envelope
    arrived_ns: int


class BatchIntake:
    """The input of a worker whose first task takes lists; `names` are those of the flow's streams."""

    def __init__(self, head: BatchRunner, outbox: Outbox, names: Sequence[str]) -> None:
        self._head = head
        self._outbox = outbox
        self._names = names
        self._gathered: list[_Gathered] = []
        self._first_input = self._last_input = 0
        self._useful_ns = 0

    @property
    def is_full(self) -> bool:
        """Whether a whole batch is at hand."""
        return self._head.is_full

    def begin(self, envelope: Envelope) -> None:
        """The items that come now are those of this envelope."""

    def process_one(self, envelope: Envelope, index: int, tag: Tag | None, arrived_ns: int) -> None:
        """Run the task on one item alone."""
        item = envelope.items[index]
        if type(item) is Unread:
            turn_to(self._head, self._outbox, envelope, index)
            self._head.refuse(item)
            return
        alone = envelope._replace(
            items=[item],
            ids=None if envelope.ids is None else [envelope.ids[index]],
            metadata=None if envelope.metadata is None else [envelope.metadata[index]],
            tags=[] if tag is None else [msgspec.structs.replace(tag, item=0)],
        )
        self._head.take(alone, self._names[envelope.stream], arrived_ns)
        self._head.work_off()

    def gather(self, sequence: int, envelope: Envelope, arrived_ns: int, useful_ns: int = 0) -> None:
        """An envelope is at hand, the decoding of which took so long; its items wait for a batch."""
        if not self._gathered:
            self._first_input = sequence
        self._outbox.current_input = self._first_input  # what comes of a batch may be of any of its envelopes
        self._gathered.append(_Gathered(envelope, arrived_ns))
        self._last_input = sequence
        self._useful_ns += useful_ns
        self._head.take(self._read(envelope), self._names[envelope.stream], arrived_ns)

    def _read(self, envelope: Envelope) -> Envelope:
        """The envelope without the items that their codec could not read, which are refused."""
        if not envelope.unread:
            return envelope
        kept = []
        for index, item in enumerate(envelope.items):
            if type(item) is Unread:
                turn_to(self._head, self._outbox, envelope, index)
                self._head.refuse(item)
            else:
                kept.append(index)
        return picked(envelope, kept)._replace(unread=False)

    def work_off(self) -> int:
        """Run the task on all that is at hand; how many envelopes that were."""
        gathered, self._gathered = self._gathered, []
        if not gathered:
            return 0
        outbox = self._outbox
        useful_before_ns = outbox.task_time.go(time.monotonic_ns())
        self._head.work_off()
        outbox.finish_input(self._last_input)
        useful_ns = outbox.task_time.halt(time.monotonic_ns()) - useful_before_ns
        self._share(gathered, self._useful_ns + useful_ns)
        self._useful_ns = 0
        return len(gathered)

    def _share(self, gathered: Sequence[_Gathered], useful_ns: int) -> None:
        """Each envelope took as long as its items are many."""
        items = sum(len(one.envelope.items) for one in gathered)
        for envelope, arrived_ns in gathered:
            share_ns = useful_ns * len(envelope.items) // max(1, items)
            self._head.measured.envelope_done(envelope, arrived_ns, share_ns)


def intake_of(head: Runner, outbox: Outbox, names: Sequence[str]) -> Intake | BatchIntake:
    """The input of a worker, of the kind that its first task asks for."""
    if isinstance(head, BatchRunner):
        return BatchIntake(head, outbox, names)
    assert isinstance(head, ItemRunner), "tasks take items or lists of them"
    return Intake(head, outbox, names)
