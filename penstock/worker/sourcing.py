"""The loop of a source worker: read, send on, and know at any time from where to go on."""

import random
import time
from collections import deque
from typing import Any, NamedTuple, cast

import msgspec

from penstock.flow.graph import Task
from penstock.io.letters import LettersReader
from penstock.io.pauses import pause_s
from penstock.io.protocol import Reader, Source, SourceClock
from penstock.stats.sampling import Sampler, affordable
from penstock.wire.frames import END, Inbox
from penstock.wire.ids import origin_of
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


class Sourcing:
    """One split of a source. Ids of its items are (origin, ordinal)."""

    def __init__(self, task: Task, outbox: Outbox, measured: Measurements, inbox: Inbox) -> None:
        self._source = cast("Source", task.body)
        self._name = task.name
        self._origin = 0
        self._outbox = outbox
        self._measured = measured
        self._inbox = inbox
        self._sampling = 0.0
        self._counted = _Counted(0, 0, 0)
        self._rate_per_s = self._envelopes_per_s = 0.0
        self._random = random.Random(task.name)
        self._sampler = Sampler(0.0, self._random.random)
        self._full = False
        self._knows_due = False
        self._paused_at_ns: int | None = None
        self._reader: Reader | None = None
        self._position: Position | None = None

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

    def run(self, order: SourceOrder) -> Position:
        """Read until the bridge ends the batch or the source has run dry; the position that was reached."""
        reader = self._open(order)
        at = order.position
        chunk = self._outbox.finished_input
        marks: deque[tuple[int, Position]] = deque()
        next_mark_ns = 0
        self._counted = self._count(time.monotonic_ns(), at.ordinal)
        while not at.done and not self._ended():
            self._pause()
            got = reader.read(_CHUNK, _WAIT_S)
            if got is None:
                at = Position(at.ordinal, reader.offset, done=True)
                break
            items, due_ns = got
            self._full = len(items) == _CHUNK
            self._knows_due = due_ns is not None
            if not items:
                continue
            chunk += 1
            self._outbox.current_input = chunk
            started_ns, waited_ns = time.monotonic_ns(), self._outbox.waited_ns
            self._send(items, due_ns, at.ordinal)
            useful_ns = self._outbox.useful_ns(started_ns, waited_ns)
            self._measured.source_read(len(items), useful_ns, due_ns)
            self._outbox.finished_input = chunk
            at = Position(at.ordinal + len(items), reader.offset)
            marks.append((chunk, at))
            if (now_ns := time.monotonic_ns()) >= next_mark_ns:
                self._mark(marks)
                self._afford(now_ns, at.ordinal)
                next_mark_ns = now_ns + _MARK_EVERY_NS
        self._position = at
        return at

    def _open(self, order: SourceOrder) -> Reader:
        """The reader goes on over batches, unless the batch begins somewhere else than the last one ended."""
        if self._reader is None or self._position != order.position:
            if self._reader is not None:
                self._reader.close()
            self._origin = origin_of(self._name, order.split)
            self._random.seed(self._origin)
            clock = SourceClock(self._outbox.time.local_ns(order.started_at_ns), order.run_position.offset)
            self._reader = self._source.open(order.split, order.position.offset, clock)
        return self._reader

    def _pause(self) -> None:
        """Items that will wait in an envelope anyway are read some at a time: one wake-up instead of many."""
        shortest_ns = min((stream.lifetime_ns for stream in self._outbox.streams), default=0)
        if self._full or not shortest_ns:
            self._paused_at_ns = None
            return
        self._paused_at_ns = time.monotonic_ns()
        time.sleep(pause_s(shortest_ns * 1e-9, knows_due=self._knows_due))

    def _ended(self) -> bool:
        self._inbox.wait(0)
        return any(kind == END for kind, _ in self._inbox.frames())

    def _send(self, items: list[Any], due_ns: list[int] | None, ordinal: int) -> None:
        streams = self._outbox.streams
        with_ids = self._outbox.with_ids
        played_back = self._reader.ids if isinstance(self._reader, LettersReader) else None
        self._outbox.emitted_ns = self._emitted_ns(due_ns, 0)
        sampled = iter(self._sampler.places(len(items)))
        next_sampled = next(sampled, None)
        for index, item in enumerate(items):
            origin_ns = None
            if index == next_sampled:
                next_sampled = next(sampled, None)
                emitted_ns = self._outbox.emitted_ns = self._emitted_ns(due_ns, index)
                due_at_ns = emitted_ns if due_ns is None else due_ns[index]
                self._measured.sent_late(emitted_ns - due_at_ns)
                origin_ns = self._outbox.time.of(due_at_ns)
            if with_ids or origin_ns is not None or self._outbox.origin_ns is not None:
                item_id = (self._origin, ordinal + index) if played_back is None else played_back[index]
                self._outbox.begin_item(item_id if with_ids else None, origin_ns)
            for stream in streams:
                stream.put(item)

    def _emitted_ns(self, due_ns: list[int] | None, index: int) -> int:
        """When an item would have been sent without the pause, which counts as time in its envelope."""
        now_ns = time.monotonic_ns()
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
