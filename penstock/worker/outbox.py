"""What a worker sends: open envelopes, when they are shipped, and which inputs are thereby done with.

Two threads meet here. The task's thread puts items in; the shipper's thread ships what has reached its batch
lifetime. Putting takes no lock: an item is first appended, then the stream is opened if it is not, while
shipping first closes the stream and then takes what it finds, so no item is ever left without a deadline.
Shipping holds the lock, so the envelopes of a channel leave in order.
"""

import sys
import threading
import time
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from penstock.flow.graph import Stream
from penstock.flow.record import Metadata
from penstock.flow.sequences import Place
from penstock.wire.codecs import coder_of
from penstock.wire.divisions import Division, Spans
from penstock.wire.envelope import Address, Tag, encode
from penstock.wire.frames import BALANCED, ack_frame, choice_of, marked_frame, out_frame
from penstock.wire.ids import ItemId, stream_code
from penstock.wire.keys import key_group
from penstock.wire.routes import StreamRoute
from penstock.worker.by_key import ByKey
from penstock.worker.flow_time import UNKNOWN_NS, FlowTime
from penstock.worker.parts import Described, Ids, Part, dump
from penstock.worker.sending import Frames
from penstock.worker.useful_time import ShipperTime, TaskTime

_FIRST_COUNT_LIMIT = 64
_LATER_NS = 1 << 62
_GROWTH = 8
_PROMPT_NS = 200_000  # a send that takes longer was waiting for room, and waiting is not useful time


class Came(NamedTuple):
    """The way of the tagged item that is being processed: its stream, and when it entered what.

    `entry_ns` is when it entered the sequence that its stream belongs to, by the flow's clock; `taken_ns`
    when the task took it, by this machine's.
    """

    stream: int
    entry_ns: int
    taken_ns: int


NO_WAY = Came(-1, UNKNOWN_NS, UNKNOWN_NS)


class Channel:
    """The open envelope for one receiving replica."""

    __slots__ = ("address", "ids", "items", "metadata", "place", "tags", "target")

    def __init__(self, route: StreamRoute, replica: int) -> None:
        self.address: Address = route.address(replica)
        self.target, self.place = route.next_stop(replica)
        self.items: list[Any] = []
        self.ids: list[ItemId | None] = []
        self.metadata: list[Metadata | None] = []
        self.tags: list[Tag] = []


class OutStream:
    """A stream at its sender."""

    def __init__(self, outbox: "Outbox", spec: Stream, number: int, place: Place | None = None) -> None:
        self.spec = spec
        self.coder = coder_of(spec.codec, spec.name)
        self.number = number
        self.place = place
        self.lifetime_ns = round(spec.batch_lifetime_ms * 1e6)
        self.is_open = False
        self.deadline_ns = 0
        self.first_input = 0
        self.count_limit = _FIRST_COUNT_LIMIT
        self.shipped_items = 0
        self.shipped_envelopes = 0
        self.coded_ns = 0
        """Useful time that the shipper's thread spent on it."""
        self.handed_on = 0
        self.link: Callable[[Any], None] | None = None
        self.pool: list[Channel] = []
        self.active: Sequence[Channel] = ()
        self.by_key: ByKey[Channel] = ByKey()
        self.code = stream_code(spec.name)
        self.sent_of: ItemId | None = None
        self.sent_count = 0
        self._outbox = outbox
        self._turn = 0
        self._balances_from: int | None = None
        self.shares = 1
        """For how many replicas an open envelope is: any may have the items of a balanced stream."""
        self.put: Callable[[Any], None] = {
            "round_robin": self._put_in_turn,
            "key": self._put_by_key,
            "broadcast": self._put_to_all,
            "forward": self._put_to_twin,
        }[spec.wiring]
        """Send an item to whom the wiring says."""

    def lay(self, route: StreamRoute, active: int) -> None:
        """Take up the addresses of a batch; nothing is open at that time."""
        self.pool = [Channel(route, replica) for replica in range(route.pool)]
        self._balances_from = route.first if self.spec.balanced and route.is_direct else None
        self.activate(active)

    def activate(self, count: int, table: Spans | None = None) -> None:
        """From the next item on, send to the first `count` replicas. One assignment, so no lock."""
        self.active = tuple(self.pool[: max(1, count)])
        if self.spec.wiring == "key" and len(self.active) >= count:  # else these have no addresses yet
            self.by_key.divide(self.active, Division(len(self.active), table))
        if self._balances_from is not None:
            choice, self.shares = choice_of(self._balances_from, len(self.active)), len(self.active)
            for channel in self.pool:
                channel.target, channel.place = choice, BALANCED

    @property
    def takes_many(self) -> bool:
        """Whether items without ids and tags can be put together: they have no keys, and may wait."""
        return self.spec.wiring != "key" and (self.lifetime_ns > 0 or self._outbox.holds)

    def put_many(self, items: list[Any]) -> None:
        """Send items that have neither ids, tags nor keys, those of a receiver at once."""
        wiring = self.spec.wiring
        if wiring == "broadcast":
            for channel in self.active:
                self._extend(channel, items)
        elif wiring == "forward":
            self._extend(self.pool[self._outbox.replica], items)
        elif self._balances_from is not None:
            self._extend(self.pool[0], items)
        else:
            active, turn = self.active, self._turn
            width = len(active)
            for place in range(min(width, len(items))):
                self._extend(active[(turn + place) % width], items[place::width])
            self._turn = (turn + len(items)) % width

    def _extend(self, channel: Channel, items: list[Any]) -> None:
        """Ship as many full envelopes as that gives; the rest waits for its lifetime, or for `release`."""
        outbox, start = self._outbox, 0
        while start < len(items):
            room = max(1, self.count_limit - len(channel.items))
            some = items[start : start + room]
            if outbox.with_metadata:
                channel.metadata.extend([None] * len(some))
            channel.items.extend(some)
            start += room
            self._added(outbox, channel)

    def in_turn(self, part: Part) -> list[tuple[Channel, Part]]:
        """What waited for any of the replicas, each a piece: two that go to the same one stay in order."""
        active = self.active
        pieces = part.pieces(len(active))
        turn, self._turn = self._turn, (self._turn + len(pieces)) % len(active)
        return [(active[(turn + place) % len(active)], piece) for place, piece in enumerate(pieces)]

    def _put_in_turn(self, item: Any) -> None:
        if self._balances_from is not None:
            self._add(self.pool[0], item, None)
            return
        active = self.active
        turn = self._turn
        if turn >= len(active):
            turn = 0
        self._turn = turn + 1
        self._add(active[turn], item, None)

    def _put_by_key(self, item: Any) -> None:
        key = self.spec.key
        group = key_group(key(item) if callable(key) else self._outbox.parent_id)
        by_key = self.by_key
        by_key.counts[group] += 1
        self._add(by_key.channels[group], item, None)

    def _put_to_all(self, item: Any) -> None:
        for replica, channel in enumerate(self.active):
            self._add(channel, item, replica)

    def _put_to_twin(self, item: Any) -> None:
        if self.link is not None:
            self.handed_on += 1
            self.link(item)
            return
        self._add(self.pool[self._outbox.replica], item, None)

    def _add(self, channel: Channel, item: Any, copy: int | None) -> None:
        outbox = self._outbox
        if outbox.labels:
            if outbox.with_ids:
                channel.ids.append(outbox.child_id(self, copy))
            if outbox.with_metadata:
                channel.metadata.append(outbox.metadata)
        if outbox.origin_ns is None:
            channel.items.append(item)
        else:
            outbox.take_lock()
            try:
                emit_ns = outbox.time.of(outbox.put_ns())
                tag = Tag(len(channel.items), emit_ns, outbox.origin_ns, outbox.entry_ns(self))
                channel.tags.append(tag)
                channel.items.append(item)
            finally:
                outbox.lock.release()
        may_wait = self.lifetime_ns or outbox.holds
        if not may_wait or not self.is_open or len(channel.items) >= self.count_limit:
            self._added(outbox, channel)

    def _added(self, outbox: "Outbox", channel: Channel) -> None:
        """A channel has got more: ship it, or let its lifetime begin."""
        if not self.lifetime_ns and not outbox.holds:
            outbox.ship(self, channel)
            return
        if not self.is_open:
            outbox.open(self)
        if len(channel.items) >= self.count_limit:
            outbox.ship(self, channel)


class Outbox:
    """All output streams of a worker."""

    def __init__(
        self, send: Callable[[bytes], None], replica: int, *, with_ids: bool, gathers: bool = False
    ) -> None:
        """`send` takes a frame, or several in a row if it `gathers`."""
        self.lock = threading.RLock()  # an item that cannot be shipped may be reported while shipping
        self.replica = replica
        self.born_ns = time.monotonic_ns()
        self.time = FlowTime()
        self.with_ids = with_ids
        self.with_metadata = False
        """Whether an item with metadata was ever there: until then none of them is asked about its own."""
        self.labels = with_ids
        """Whether items carry ids or metadata."""
        self.metadata: Metadata | None = None
        self.streams: list[OutStream] = []
        self.origin_ns: int | None = None
        self.came = NO_WAY
        self.emitted_ns: int | None = None
        """Since when what is put has been there, by this machine's clock; None: since now."""
        self.parent_id: ItemId | None = None
        self.current_input = 0
        self.finished_input = 0
        self.acknowledged = 0
        self.unsettled: int | None = None
        """The first input that is finished, and whose items a sink has not delivered yet."""
        self.before_finishing: Callable[[int], None] = lambda _: None
        """Called before an input is said to be finished."""
        self.task_time = TaskTime()
        self.behind_ns = 0
        self.joins = False
        """Whether receivers have much before them: then what is there together shares an envelope, though it
        is shipped at once. The control line may turn it at any time."""
        self.holds = False
        """Whether what would be shipped at once waits for what is there already."""
        self.together = sys.maxsize
        """For how many items it waits."""
        self._held: list[OutStream] = []
        self.wake_shipper: Callable[[int], None] = lambda _: None
        self.on_unshippable: Callable[[OutStream, Any, Exception], None] = _refuse
        self._shipper_time = ShipperTime(self.task_time)
        self._shipper_ships = False
        self.frames = Frames(send, self.lock, gathers=gathers)

    def take_lock(self) -> None:
        """For the task's thread: what it waits for the shipper's is not useful time."""
        if not self.lock.acquire(False):  # noqa: FBT003 - every item comes here, and a keyword takes time
            self._await_lock()

    def _await_lock(self) -> None:
        works = self.task_time.runs
        self.task_time.halt(time.monotonic_ns())
        self.lock.acquire()
        if works:
            self.task_time.go(time.monotonic_ns())

    def begin_batch(self) -> None:
        """Inputs are numbered anew: nothing of the batch before may acknowledge any of this one."""
        with self.lock:
            self.current_input = self.finished_input = self.acknowledged = 0

    def begin_item(
        self, item_id: ItemId | None, origin_ns: int | None, metadata: Metadata | None = None
    ) -> None:
        """What is put from now on stems from this item."""
        self.parent_id = item_id
        self.origin_ns = origin_ns
        if metadata is not self.metadata:
            self.describe(metadata)

    def describe(self, metadata: Metadata | None) -> None:
        """What is put from now on has these metadata."""
        self.metadata = metadata
        if metadata is None or self.with_metadata:
            return
        self.take_lock()
        try:
            for stream in self.streams:
                for channel in stream.pool:
                    channel.metadata = [None] * len(channel.items)
            self.with_metadata = self.labels = True
        finally:
            self.lock.release()

    def go_back_to(self, sequence: int) -> None:
        """What is put from now on stems from this input, perhaps an older one than what is in envelopes."""
        if sequence == self.current_input:
            return
        self.take_lock()
        try:
            self.current_input = sequence
            for stream in self.streams:
                if stream.is_open:
                    stream.first_input = min(stream.first_input, sequence)
        finally:
            self.lock.release()

    def descend(self, stream: OutStream) -> tuple[ItemId | None, int | None]:
        """A chained task takes an output as its item; returns what `ascend` needs to come back."""
        before = (self.parent_id, self.origin_ns)
        if self.with_ids:
            self.parent_id = self.child_id(stream, None)
        return before

    def ascend(self, before: tuple[ItemId | None, int | None]) -> None:
        """Back in the task before: it goes on with its own item."""
        self.parent_id, self.origin_ns = before

    def child_id(self, stream: OutStream, copy: int | None) -> ItemId | None:
        """Id of the next output: its parent's, then stream and number, then the replica a broadcast goes to.

        The number counts what this parent sent into this stream, a broadcast once, and the stream is known by
        its name: neither the order in which streams were declared nor the width of a broadcast matters.
        """
        parent = self.parent_id
        if parent is None or stream.spec.keeps_ids:
            return parent
        if stream.sent_of is not parent:
            stream.sent_of = parent
            stream.sent_count = 0
        if not copy:
            stream.sent_count += 1
        child = stream.code + stream.sent_count - 1
        return (*parent, child) if copy is None else (*parent, child, copy)

    def entry_ns(self, stream: OutStream) -> int:
        """When the item that is put entered the sequence of the stream; UNKNOWN_NS if it enters only now.

        What does not come by the stream before this one in the sequence, but by another input, is not in it.
        """
        place = stream.place
        if place is None or self.came is NO_WAY:
            return UNKNOWN_NS
        if place.entry == "taken":
            return self.time.of(self.came.taken_ns)
        return self.came.entry_ns if self.came.stream == place.after else UNKNOWN_NS

    def put_ns(self) -> int:
        """Since when the item that is being put has been there."""
        return time.monotonic_ns() if self.emitted_ns is None else self.emitted_ns

    def open(self, stream: OutStream) -> None:
        """Start the lifetime of a stream's envelopes."""
        self.take_lock()
        try:
            if stream.is_open:
                return
            stream.first_input = self.current_input
            stream.deadline_ns = self.put_ns() + stream.lifetime_ns if stream.lifetime_ns else _LATER_NS
            stream.is_open = True
            if not stream.lifetime_ns:
                self._held.append(stream)
        finally:
            self.lock.release()
        self.wake_shipper(stream.deadline_ns)

    def ship(self, stream: OutStream, channel: Channel) -> None:
        """Ship one envelope now."""
        self.take_lock()
        try:
            self._ship(stream, channel)
        finally:
            self.lock.release()

    def ship_due(self, now_ns: int) -> int | None:
        """For the shipper: ship what has reached its lifetime; the next deadline, if there is one."""
        following: int | None = None
        for stream in self.streams:
            if not stream.is_open:
                continue
            if stream.deadline_ns <= now_ns:
                self._ship_late(stream)
            elif following is None or stream.deadline_ns < following:
                following = stream.deadline_ns
        return following

    def flush(self) -> None:
        """Ship everything."""
        for stream in self.streams:
            self.take_lock()
            try:
                self._ship_all(stream)
            finally:
                self.lock.release()

    def gather(self, together: int = sys.maxsize, *, crowded: bool = False) -> None:
        """More is there already: what comes of so many items goes together where nobody has to wait for it.

        It takes one system call, and one envelope if much waits before receivers, or before this worker.
        """
        self.together = together
        self.frames.gather()
        self.holds = self.joins or crowded

    def let_go(self) -> None:
        """Ship what was held so far."""
        if self._held:
            self.take_lock()
            try:
                held, self._held = self._held, []
                for stream in held:
                    self._ship_all(stream)
            finally:
                self.lock.release()
        self.frames.let_go()

    def release(self) -> None:
        """All that was there is worked off: ship what was held, and from now on everything by itself."""
        self.holds = False
        self.together = sys.maxsize
        self.let_go()
        self.frames.apart()

    def acknowledge(self, mark: bytes = b"") -> None:
        """Tell the bridge which inputs are done, if that has changed since it last heard of it."""
        self.take_lock()
        try:
            done = self.done_input()
            if done > self.acknowledged or mark:
                self.acknowledged = max(self.acknowledged, done)
                self.frames.send(ack_frame(self.acknowledged, mark))
        finally:
            self.lock.release()

    def answer_mark(self, sequence: int, epoch: int, said: bytes) -> None:
        """Tell the bridge that all inputs up to a mark are done with; nothing may be open."""
        self.frames.apart()
        with self.lock:
            self.acknowledged = max(self.acknowledged, sequence)
            self.frames.send(marked_frame(self.acknowledged, epoch, said))

    def finish_input(self, sequence: int) -> None:
        """This input, and all before it, are worked off."""
        self.before_finishing(sequence)
        self.finished_input = sequence

    def done_input(self) -> int:
        """The last input that is processed and of which nothing waits in an open envelope or in a sink."""
        done = self.finished_input
        if self.unsettled is not None and self.unsettled <= done:
            done = self.unsettled - 1
        for stream in self.streams:
            if stream.is_open and stream.first_input <= done:
                done = stream.first_input - 1
        return done

    def send(self, data: bytes) -> None:
        """A frame that is no envelope: somebody waits for it."""
        self.frames.apart()
        with self.lock:
            self.frames.send(data)

    def _ship_late(self, stream: OutStream) -> None:
        """By the shipper's thread: what it works on a stream is counted."""
        with self.lock:
            counted = self._shipper_time
            before_ns = counted.total_ns
            counted.go(time.monotonic_ns())
            self._shipper_ships = True
            try:
                self._ship_all(stream)
                self.frames.let_go()  # the task's thread may be at a slow item
            finally:
                self._shipper_ships = False
                stream.coded_ns += counted.halt(time.monotonic_ns()) - before_ns

    def _ship_all(self, stream: OutStream) -> None:
        stream.is_open = False
        waiting = [channel for channel in stream.pool if channel.items]
        for channel in waiting[:-1]:
            self._ship(stream, channel, acknowledging=False)
        for channel in waiting[-1:]:
            self._ship(stream, channel)

    def _ship(self, stream: OutStream, channel: Channel, *, acknowledging: bool = True) -> None:
        """Ship what a channel holds; only the last envelope that is waiting may acknowledge its inputs."""
        count = len(channel.items)
        if not count:
            return
        items = channel.items[:count]
        del channel.items[:count]
        tags, channel.tags = channel.tags, []
        ids, metadata = (None, None) if not self.labels else self._take_labels(channel, count)
        part = Part(items, ids, tags, metadata)
        if stream.shares > 1:
            *before, (channel, part) = stream.in_turn(part)
            for receiver, one in before:
                self._ship_part(stream, receiver, one, acknowledging=False)
        self._ship_part(stream, channel, part, acknowledging=acknowledging)

    def _ship_part(self, stream: OutStream, channel: Channel, part: Part, *, acknowledging: bool) -> None:
        """In one envelope, or in several if it does not fit; in none if nothing of it can be coded."""
        coded = self._parts(stream, part)
        for number, (one, body) in enumerate(coded, 1):
            if acknowledging and number == len(coded):
                self.acknowledged = max(self.acknowledged, self.done_input())
            self._send_envelope(stream, channel, *one, body)

    def _take_labels(self, channel: Channel, count: int) -> tuple[Ids, Described]:
        """What a channel has for the first of its items beside them."""
        ids = metadata = None
        if self.with_ids:
            ids = channel.ids[:count]
            del channel.ids[:count]
        if self.with_metadata:
            metadata = channel.metadata[:count]
            del channel.metadata[:count]
            if not any(metadata):
                metadata = None
        return ids, metadata

    def _send_envelope(
        self,
        stream: OutStream,
        channel: Channel,
        items: list[Any],
        ids: Ids,
        tags: list[Tag],
        metadata: Described,
        body: bytes,
    ) -> None:
        count = len(items)
        if stream.lifetime_ns or count > 1:
            fitting = stream.spec.batch_bytes * count // max(1, len(body))
            most = max(1, min(fitting, _GROWTH * max(count, _FIRST_COUNT_LIMIT)))
            stream.count_limit = most * stream.shares
        envelope = encode(
            channel.address,
            stream.number,
            self.replica,
            self.time.now_ns() if tags else UNKNOWN_NS,
            body,
            count,
            stream.coder.number,
            tags,
            ids,
            metadata,
        )
        stream.shipped_items += count
        stream.shipped_envelopes += 1
        started_ns = time.monotonic_ns()
        if self._shipper_ships:
            self._shipper_time.halt(started_ns)
        self.frames.send(out_frame(self.acknowledged, channel.target, channel.place, envelope))
        sent_ns = time.monotonic_ns()
        if sent_ns - started_ns > _PROMPT_NS:
            if self._shipper_ships:
                self._shipper_time.go(sent_ns)
            else:
                self.task_time.waited(sent_ns - started_ns)

    def _parts(self, stream: OutStream, part: "Part") -> list[tuple["Part", bytes]]:
        """Code the items, in as many envelopes as it takes.

        What cannot be coded, or is too large, is halved until the items at fault stand alone: those are
        handed to the error policy, and all others travel in their order.
        """
        try:
            return [(part, dump(part.items, stream.coder, stream.spec.name))]
        except Exception as problem:  # noqa: BLE001 - a user's item may raise anything when coded
            count = len(part.items)
            if count > 1:
                halves = part.cut(0, count // 2), part.cut(count // 2, count)
                return [coded for half in halves for coded in self._parts(stream, half)]
            self.on_unshippable(stream, part.items[0], problem)
            return []


def _refuse(_stream: OutStream, _item: Any, problem: Exception) -> None:
    raise problem
