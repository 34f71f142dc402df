"""The loop of a source worker: read, send on, and know at any time from where to go on."""

import random
import time
from collections import deque
from collections.abc import Callable
from typing import Any, NamedTuple, cast

import msgspec

from penstock.flow.graph import Task
from penstock.flow.record import Metadata, Record, metadata_of
from penstock.io.letters import LettersReader
from penstock.io.pauses import pause_s
from penstock.io.protocol import Reader, RecordReader, Source, SourceClock
from penstock.stats.sampling import Sampler, affordable
from penstock.wire.frames import END, Inbox
from penstock.wire.ids import ItemId, origin_of
from penstock.wire.orders import Position, SourceOrder
from penstock.worker.measurements import Measurements
from penstock.worker.outbox import Outbox

_CHUNK = 512
_WAIT_S = 0.01
_MARK_EVERY_NS = 100_000_000
_AFFORD_EVERY_NS = 1_000_000_000


class _Counted(NamedTuple):
    """What had been read and shipped at that time."""

    at_ns: int
    items: int
    envelopes: int


class _Labels(NamedTuple):
    """What items have beside their values."""

    ids: list[ItemId | None] | None
    metadata: list[Metadata | None] | None

    def item_id(self, place: int) -> ItemId | None:
        return None if self.ids is None else self.ids[place]

    def metadata_of(self, place: int) -> Metadata | None:
        return None if self.metadata is None else self.metadata[place]


class Sourcing:
    """One split of a source. Ids of its items are (origin, ordinal)."""

    def __init__(
        self,
        task: Task,
        outbox: Outbox,
        measured: Measurements,
        now_ns: Callable[[], int] = time.monotonic_ns,
        sleep: Callable[[float], None] = time.sleep,
        refuse: Callable[[Any, Exception], None] | None = None,
    ) -> None:
        self._refuse = refuse
        self._source = cast("Source[Any]", task.body)
        self._name = task.name
        self._origin = 0
        self._outbox = outbox
        self._measured = measured
        self._now_ns = now_ns
        self._sleep = sleep
        self._sampling = 0.0
        self._counted = _Counted(0, 0, 0)
        self._rate_per_s = self._envelopes_per_s = 0.0
        self._random = random.Random(task.name)
        self._sampler = Sampler(0.0, self._random.random)
        self._full = False
        self._knows_due = False
        self._paused_at_ns: int | None = None
        self._reader: Reader[Any] | None = None
        self._records: RecordReader | None = None
        self.position: Position | None = None
        """Where it stands: all before was sent."""
        self._marks: deque[tuple[int, Position]] = deque()
        self._next_mark_ns = 0

    def sample(self, share: float) -> None:
        """Tag this share of the items from now on."""
        if share != self._sampling:
            self._sampling = share
            self._set_share()

    def _set_share(self) -> None:
        share = affordable(self._sampling, self._rate_per_s, self._envelopes_per_s)
        self._sampler.set_probability(share)

    def _afford(self, now_ns: int, ordinal: int) -> None:
        """Once a second: as many samples as are worth it at the rates of now."""
        before, took_ns = self._counted, now_ns - self._counted.at_ns
        if took_ns < _AFFORD_EVERY_NS:
            return
        self._counted = now = self._count(now_ns, ordinal)
        self._rate_per_s = (now.items - before.items) * 1e9 / took_ns
        self._envelopes_per_s = (now.envelopes - before.envelopes) * 1e9 / took_ns
        self._set_share()
        self._sampler.begin_interval(self._rate_per_s)

    def _count(self, now_ns: int, ordinal: int) -> _Counted:
        return _Counted(now_ns, ordinal, sum(stream.shipped_envelopes for stream in self._outbox.streams))

    def run(self, order: SourceOrder, inbox: Inbox) -> Position:
        """Read until the bridge ends the batch or the source has run dry; the position that was reached."""
        at = self.begin(order)
        while not at.done and not _ended(inbox):
            self._pause()
            at = self.read()
        return at

    def begin(self, order: SourceOrder) -> Position:
        """A batch begins at the position of the order."""
        self._open(order)
        self.position = order.position
        self._marks.clear()
        self._next_mark_ns = 0
        self._counted = self._count(self._now_ns(), order.position.ordinal)
        return order.position

    def read(self) -> Position:
        """Read what is there, or wait for it a little, and send it; the position that was reached."""
        reader, at = self._reader, self.position
        assert reader is not None, "a batch was begun"
        assert at is not None, "a batch was begun"
        got = reader.read(_CHUNK, _WAIT_S)
        if got is None:
            self.position = at = Position(at.ordinal, reader.offset, done=True)
            return at
        items, due_ns = got
        self._full = len(items) == _CHUNK
        self._knows_due = due_ns is not None
        if self._records is not None:
            self._see_records(self._records)
            self._see_lag(self._records, unsent=len(items))
        if not items and (self._records is None or reader.offset == at.offset):
            return at
        chunk = self._outbox.finished_input + 1
        self._outbox.current_input = chunk
        task_time = self._outbox.task_time
        useful_before_ns = task_time.go(time.monotonic_ns())
        self._send(items, due_ns, at.ordinal)
        useful_ns = task_time.halt(time.monotonic_ns()) - useful_before_ns
        self._measured.source_read(len(items), useful_ns, due_ns)
        if self._records is not None:
            self._see_lag(self._records, unsent=0)
        self._outbox.finished_input = chunk
        self.position = at = Position(at.ordinal + len(items), reader.offset)
        self._marks.append((chunk, at))
        if (now_ns := self._now_ns()) >= self._next_mark_ns:
            self._mark(self._marks)
            self._afford(now_ns, at.ordinal)
            self._next_mark_ns = now_ns + _MARK_EVERY_NS
        return at

    def _see_records(self, records: RecordReader) -> None:
        """What of the records that were just read is no item."""
        for one in records.refused:
            assert self._refuse is not None, "whoever reads records has an error policy"
            self._refuse(one.raw, one.problem)

    def _see_lag(self, records: RecordReader, *, unsent: int) -> None:
        """How many items are not sent: an item is one of them until it counts as processed."""
        lag = records.lag_items
        self._measured.lag_items = None if lag is None else lag + unsent

    def close(self) -> None:
        """Release what the reader holds."""
        if self._reader is not None:
            self._reader.close()

    def _open(self, order: SourceOrder) -> None:
        """The reader goes on over batches, unless the batch begins somewhere else than the last one ended."""
        if self._reader is None or self.position != order.position:
            self.close()
            self._origin = origin_of(self._name, order.split)
            self._random.seed(self._origin)
            began_ns = self._outbox.time.local_ns(order.started_at_ns)
            clock = SourceClock(began_ns, order.run_position.offset, self._now_ns, self._sleep)
            self._reader = reader = self._source.open(order.split, order.position.offset, clock)
            self._records = reader if isinstance(reader, RecordReader) else None
        if self._records is not None:
            self._records.committed(order.position.offset)

    def _pause(self) -> None:
        """Items that will wait in an envelope anyway are read some at a time: one wake-up instead of many."""
        shortest_ns = min((stream.lifetime_ns for stream in self._outbox.streams), default=0)
        if self._full or not shortest_ns:
            self._paused_at_ns = None
            return
        self._paused_at_ns = self._now_ns()
        self._sleep(pause_s(shortest_ns * 1e-9, knows_due=self._knows_due))

    def _send(self, items: list[Any], due_ns: list[int] | None, ordinal: int) -> None:
        outbox = self._outbox
        metadata: list[Metadata | None] | None = None
        if items and type(items[0]) is Record:
            items, metadata = _unpacked(self._name, items)
        ids = self._ids(len(items), ordinal) if outbox.with_ids else None
        labels = _Labels(ids, metadata)
        outbox.emitted_ns = self._emitted_ns(due_ns, 0)
        start = 0
        for place in self._sampler.places(len(items)):
            self._send_untagged(items, labels, start, place)
            emitted_ns = outbox.emitted_ns = self._emitted_ns(due_ns, place)
            due_at_ns = emitted_ns if due_ns is None else due_ns[place]
            self._measured.sent_late(emitted_ns - due_at_ns)
            outbox.begin_item(labels.item_id(place), outbox.time.of(due_at_ns), labels.metadata_of(place))
            for stream in outbox.streams:
                stream.put(items[place])
            start = place + 1
        self._send_untagged(items, labels, start, len(items))
        outbox.metadata = None

    def _send_untagged(self, items: list[Any], labels: "_Labels", start: int, end: int) -> None:
        """Send the items from `start` up to `end`, many at once if there is nothing to be said of each."""
        outbox = self._outbox
        if labels.ids is not None or labels.metadata is not None:
            for place in range(start, end):
                outbox.begin_item(labels.item_id(place), None, labels.metadata_of(place))
                for stream in outbox.streams:
                    stream.put(items[place])
            return
        outbox.begin_item(None, None)
        some = items[start:end]
        for stream in outbox.streams:
            if stream.takes_many:
                stream.put_many(some)
            else:
                for item in some:
                    stream.put(item)

    def _ids(self, count: int, ordinal: int) -> list[ItemId | None]:
        if isinstance(self._reader, LettersReader):
            return [*self._reader.ids]
        numbers = range(ordinal, ordinal + count) if self._records is None else self._records.ordinals
        return [(self._origin, number) for number in numbers]

    def _emitted_ns(self, due_ns: list[int] | None, index: int) -> int:
        """When an item would have been sent without the pause, which counts as time in its envelope."""
        now_ns = self._now_ns()
        if due_ns is None or self._paused_at_ns is None:
            return now_ns
        return min(now_ns, max(due_ns[index], self._paused_at_ns))

    def _mark(self, marks: deque[tuple[int, Position]]) -> None:
        """Tell the bridge from where a successor of this process would have to go on."""
        done = self._outbox.done_input()
        reached: Position | None = None
        while marks and marks[0][0] <= done:
            reached = marks.popleft()[1]
        if reached is not None:
            self._outbox.acknowledge(msgspec.json.encode(reached))


def _unpacked(source: str, items: list[Any]) -> tuple[list[Any], list[Metadata | None]]:
    """The items of records, and their metadata."""
    for item in items:
        if type(item) is not Record:
            raise TypeError(
                f'source "{source}" read records together with other items, such as {item!r:.80};'
                " all items of one read must be records, or none"
            )
    return [item.value for item in items], [*map(metadata_of, items)]


def _ended(inbox: Inbox) -> bool:
    inbox.wait(0)
    return any(kind == END for kind, _ in inbox.frames())
