"""The loop of a source worker: read, send on, and know at any time from where to go on."""

import random
import time
from collections import deque
from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple, cast

import msgspec

from penstock.epochs.reports import Marked
from penstock.flow.graph import Task
from penstock.flow.record import Metadata, Record, metadata_of
from penstock.io.letters import LettersReader
from penstock.io.pauses import pause_s
from penstock.io.protocol import GrowingSource, Reader, RecordReader, Source, SourceClock
from penstock.stats.sampling import Sampler, affordable
from penstock.wire.frames import END, GO, MARK, WAIT, Inbox, Mark, read_epoch, read_mark
from penstock.wire.ids import ItemId, origin_of
from penstock.wire.orders import Position, Reached, SourceOrder
from penstock.worker.measurements import Measurements
from penstock.worker.outbox import Outbox
from penstock.worker.readers import OpenSplit, Readers

_CHUNK = 512
_WAIT_S = 0.01
_PAUSED_S = 0.02
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


_NO_LABELS = _Labels(None, None)


class _Mark(NamedTuple):
    """When this chunk is done with, a split is at this position for a successor."""

    chunk: int
    split: str
    position: Position


class Sourcing:
    """A replica of a source: it reads the splits that the order of a batch names."""

    def __init__(
        self,
        task: Task,
        outbox: Outbox,
        measured: Measurements,
        now_ns: Callable[[], int] = time.monotonic_ns,
        sleep: Callable[[float], None] = time.sleep,
        refuse: Callable[[Any, Exception], None] | None = None,
        before_mark: Callable[[], None] = lambda: None,
        after_mark: Callable[[Mark], None] = lambda _: None,
    ) -> None:
        self._refuse = refuse
        self._before_mark = before_mark
        self._after_mark = after_mark
        self._quiet: int | None = None
        self._at_epoch: dict[int, dict[str, Position]] = {}
        source = cast("Source[Any]", task.body)
        self._readers = Readers(task.name, source)
        self._grows = isinstance(source, GrowingSource)
        self._name = task.name
        self._is_elastic = task.parallelism.elastic
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
        self.paused = False
        """Whether it is to read nothing for now; the control line may turn it at any time."""
        self._items = 0
        self._marks: deque[_Mark] = deque()
        self._marked: dict[str, Position] = {}
        self._next_mark_ns = 0

    @property
    def positions(self) -> dict[str, Position]:
        """Where each split stands: all before was sent."""
        return self._readers.positions

    @property
    def is_dry(self) -> bool:
        """Whether nothing will come any more."""
        return not self._grows and not self._readers.undone

    def sample(self, share: float) -> None:
        """Tag this share of the items from now on."""
        if share != self._sampling:
            self._sampling = share
            self._set_share()

    def _set_share(self) -> None:
        share = affordable(self._sampling, self._rate_per_s, self._envelopes_per_s)
        self._sampler.set_probability(share)

    def _afford(self, now_ns: int) -> None:
        """Once a second: as many samples as are worth it at the rates of now."""
        before, took_ns = self._counted, now_ns - self._counted.at_ns
        if took_ns < _AFFORD_EVERY_NS:
            return
        self._counted = now = self._count(now_ns)
        self._rate_per_s = (now.items - before.items) * 1e9 / took_ns
        self._envelopes_per_s = (now.envelopes - before.envelopes) * 1e9 / took_ns
        self._set_share()
        self._sampler.begin_interval(self._rate_per_s)

    def _count(self, now_ns: int) -> _Counted:
        return _Counted(now_ns, self._items, sum(stream.shipped_envelopes for stream in self._outbox.streams))

    def run(self, order: SourceOrder, inbox: Inbox) -> Reached:
        """Read until the bridge ends the batch or the source has run dry; where it stands then."""
        self.begin(order)
        while not self.is_dry and not self._ended(inbox):
            if self.paused or self._quiet is not None:
                self._look()
                inbox.wait(_PAUSED_S)
            else:
                self._pause()
                self.read()
        return Reached(self.positions, self.is_dry)

    def _ended(self, inbox: Inbox) -> bool:
        """Do what the bridge wants; whether that is the end of the batch."""
        inbox.wait(0)
        for kind, body in inbox.frames():
            if kind == END:
                return True
            if kind == MARK:
                self.mark(read_mark(body))
            elif kind == GO and read_epoch(body) == self._quiet:
                self._quiet = None
            elif kind == WAIT:
                self._quiet = read_epoch(body)
        return False

    def mark(self, mark: Mark) -> None:
        """An epoch ends between what was read and what will be: ship all, and say once where that is."""
        self._before_mark()
        outbox, positions = self._outbox, self.positions
        outbox.flush()
        self._marks.clear()
        self._marked = dict(positions)
        said = msgspec.json.encode(Marked(positions=positions))
        outbox.answer_mark(outbox.finished_input, mark.epoch, said)
        self._after_mark(mark)
        self._quiet = mark.epoch if mark.quiet else None
        self._at_epoch[mark.epoch] = positions
        self._tell_committed(mark.committed)

    def _tell_committed(self, epoch: int) -> None:
        """What was read before that epoch is in a commit: whoever wants to know it of a reader is told."""
        committed = self._at_epoch.get(epoch)
        self._at_epoch = {known: at for known, at in self._at_epoch.items() if known > epoch}
        for split in self._readers.splits.values():
            if committed is not None and split.records is not None:
                split.records.committed(committed[split.name].offset)

    def begin(self, order: SourceOrder) -> None:
        """A batch begins at the positions of the order."""
        if self._readers.open(order.positions, partial(self._clock, order)) and order.positions:
            self._random.seed(origin_of(self._name, next(iter(order.positions))))
        for split in self._readers.splits.values():
            if split.records is not None:
                split.records.committed(split.position.offset)
        self._marks.clear()
        self._marked = dict(order.positions)
        self._next_mark_ns = 0
        self._quiet = None
        self._at_epoch.clear()
        self._counted = self._count(self._now_ns())

    def read(self) -> bool:
        """Read what is there, or wait for it a little, and send it; whether any split went on."""
        self._full = False
        only = self._readers.only
        went_on = self._read_splits() if only is None else self._read_split(only, _CHUNK, _WAIT_S)
        self._look()
        return went_on

    def _read_splits(self) -> bool:
        went_on = False
        before = self._items
        for turns in self._readers.passes(_CHUNK, _WAIT_S):
            for turn in turns:
                went_on |= self._read_split(*turn)
            if went_on:
                break
        self._full |= self._items - before >= _CHUNK
        if not self._readers.splits:
            self._sleep(_WAIT_S)  # perhaps it gets some at the next boundary
        return went_on

    def _look(self) -> None:
        """From time to time: what is known of the lag, and from where a successor would go on."""
        if (now_ns := self._now_ns()) >= self._next_mark_ns:
            self._next_mark_ns = now_ns + _MARK_EVERY_NS
            for split in self._readers.splits.values():
                split.look()
            self._measured.lag_items = self._readers.lag_items
            if self._marks:
                self._mark()
                self._afford(now_ns)

    def _read_split(self, split: OpenSplit, limit: int, wait_s: float) -> bool:
        """Read from one split, and send it; whether it went on, if only to its end."""
        reader, at = split.reader, split.position
        got, read_ns = self._read_timed(reader, limit, wait_s)
        if got is None:
            self._readers.run_dry(split, Position(at.ordinal, reader.offset, done=True))
            return True
        items, due_ns = got
        self._full |= len(items) == limit
        self._knows_due = due_ns is not None
        if split.records is not None:
            self._read_records(split, split.records, len(items))
        if not items and (split.records is None or reader.offset == at.offset):
            return False
        chunk = self._outbox.finished_input + 1
        self._outbox.current_input = chunk
        task_time = self._outbox.task_time
        useful_before_ns = task_time.go(time.monotonic_ns())
        if len(items) > 1:
            self._outbox.gather()
        self._send(split, items, due_ns)
        self._outbox.release()
        useful_ns = task_time.halt(time.monotonic_ns()) - useful_before_ns
        useful_ns += read_ns + self._readers.take_looked_ns()
        self._measured.source_read(len(items), useful_ns, due_ns)
        self._outbox.finished_input = chunk
        self._items += len(items)
        split.position = Position(at.ordinal + len(items), reader.offset)
        self._marks.append(_Mark(chunk, split.name, split.position))
        return True

    def _read_timed(self, reader: Reader[Any], limit: int, wait_s: float) -> tuple[Any, int]:
        """What was read, and the useful time of it.

        A reader that may not wait works all the time. So does one that has read as much as it may; of another
        only its CPU time counts, the rest was waiting for items. Where no policy can change replicas neither
        is asked for: that would take longer than many a read.
        """
        if wait_s and not self._is_elastic:
            return reader.read(limit, wait_s), 0
        task_time, began_ns = self._outbox.task_time, time.monotonic_ns()
        if not wait_s:
            before_ns = task_time.go(began_ns)
            try:
                got = reader.read(limit, 0.0)
            finally:
                read_ns = task_time.halt(time.monotonic_ns()) - before_ns
            return got, read_ns
        cpu_ns = time.thread_time_ns()
        got = reader.read(limit, wait_s)
        if got is not None and len(got[0]) == limit:
            return got, time.monotonic_ns() - began_ns
        return got, time.thread_time_ns() - cpu_ns

    def _read_records(self, split: OpenSplit, records: RecordReader, count: int) -> None:
        """What a reader of records tells beside them: those that it could not decode, and how many wait."""
        for one in records.refused:
            assert self._refuse is not None, "whoever reads records has an error policy"
            self._refuse(one.raw, one.problem)
        split.look()
        lag = self._readers.lag_items
        # What was read counts until it is sent: that may take its time, and then it counts as processed.
        self._measured.lag_items = None if lag is None else lag + count

    def close(self) -> None:
        """Release what the readers hold."""
        self._readers.close()

    def _clock(self, order: SourceOrder, split: str) -> SourceClock:
        began_ns = self._outbox.time.local_ns(order.started_at_ns)
        return SourceClock(began_ns, order.run_positions[split].offset, self._now_ns, self._sleep)

    def _pause(self) -> None:
        """Items that will wait in an envelope anyway are read some at a time: one wake-up instead of many."""
        shortest_ns = min((stream.lifetime_ns for stream in self._outbox.streams), default=0)
        if self._full or not shortest_ns:
            self._paused_at_ns = None
            return
        self._paused_at_ns = self._now_ns()
        self._sleep(pause_s(shortest_ns * 1e-9, knows_due=self._knows_due))

    def _send(self, split: OpenSplit, items: list[Any], due_ns: list[int] | None) -> None:
        outbox = self._outbox
        metadata: list[Metadata | None] | None = None
        if items and type(items[0]) is Record:
            items, metadata = _unpacked(self._name, items)
        labels = _NO_LABELS
        if outbox.with_ids or metadata is not None:
            labels = _Labels(_ids(split, len(items)) if outbox.with_ids else None, metadata)
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

    def _emitted_ns(self, due_ns: list[int] | None, index: int) -> int:
        """When an item would have been sent without the pause, which counts as time in its envelope."""
        now_ns = self._now_ns()
        if due_ns is None or self._paused_at_ns is None:
            return now_ns
        return min(now_ns, max(due_ns[index], self._paused_at_ns))

    def _mark(self) -> None:
        """Tell the bridge from where a successor of this process would have to go on."""
        done, marks = self._outbox.done_input(), self._marks
        went_on = False
        while marks and marks[0].chunk <= done:
            mark = marks.popleft()
            self._marked[mark.split] = mark.position
            went_on = True
        if went_on:
            self._outbox.acknowledge(msgspec.json.encode(self._marked))


def _ids(split: OpenSplit, count: int) -> list[ItemId | None]:
    """Of the items that were just read."""
    if isinstance(split.reader, LettersReader):
        return [*split.reader.ids]
    first = split.position.ordinal
    numbers = range(first, first + count) if split.records is None else split.records.ordinals
    return [(split.origin, number) for number in numbers]


def _unpacked(source: str, items: list[Any]) -> tuple[list[Any], list[Metadata | None]]:
    """The items of records, and their metadata."""
    for item in items:
        if type(item) is not Record:
            raise TypeError(
                f'source "{source}" read records together with other items, such as {item!r:.80};'
                " all items of one read must be records, or none"
            )
    return [item.value for item in items], [*map(metadata_of, items)]
