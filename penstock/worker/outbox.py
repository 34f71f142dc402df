"""What a worker sends: open envelopes, when they are shipped, and which inputs are thereby done with.

Two threads meet here. The task's thread puts items in; the shipper's thread ships what has reached its batch
lifetime. Putting takes no lock: an item is first appended, then the stream is opened if it is not, while
shipping first closes the stream and then takes what it finds, so no item is ever left without a deadline.
Shipping holds the lock, so the envelopes of a channel leave in order.
"""

import threading
import time
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import msgspec

from penstock.flow.graph import ITEM_ID, Stream
from penstock.wire.envelope import Address, Tag, dump_items, encode
from penstock.wire.frames import ack_frame, out_frame
from penstock.wire.ids import ItemId, stream_code
from penstock.wire.keys import key_group, owner
from penstock.wire.routes import StreamRoute
from penstock.worker.flow_time import UNKNOWN_NS, FlowTime

ITEM_LIMIT_BYTES = 64 << 20
"""An item larger than this cannot travel: a row is held in memory several times on its way."""

_FIRST_COUNT_LIMIT = 64
_GROWTH = 8
_PROMPT_NS = 200_000  # a send that takes longer was waiting for room, and waiting is not useful time


class Unshippable(Exception):  # noqa: N818 - said of an item
    """An item that cannot be put into an envelope."""


class Channel:
    """The open envelope for one receiving replica."""

    __slots__ = ("address", "ids", "items", "place", "tags", "target")

    def __init__(self, route: StreamRoute, replica: int) -> None:
        self.address: Address = route.address(replica)
        self.target, self.place = route.next_stop(replica)
        self.items: list[Any] = []
        self.ids: list[ItemId | None] = []
        self.tags: list[Tag] = []


class OutStream:
    """A stream at its sender."""

    def __init__(self, outbox: "Outbox", spec: Stream, number: int) -> None:
        self.spec = spec
        self.number = number
        self.lifetime_ns = round(spec.batch_lifetime_ms * 1e6)
        self.is_open = False
        self.deadline_ns = 0
        self.first_input = 0
        self.count_limit = _FIRST_COUNT_LIMIT
        self.shipped_items = 0
        self.shipped_envelopes = 0
        self.handed_on = 0
        self.link: Callable[[Any], None] | None = None
        self.pool: list[Channel] = []
        self.active: Sequence[Channel] = ()
        self.code = stream_code(spec.name)
        self.sent_of: ItemId | None = None
        self.sent_count = 0
        self._outbox = outbox
        self._turn = 0
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
        self.activate(active)

    def activate(self, count: int) -> None:
        """From the next item on, send to the first `count` replicas. One assignment, so no lock."""
        self.active = tuple(self.pool[: max(1, count)])

    def _put_in_turn(self, item: Any) -> None:
        active = self.active
        turn = self._turn
        if turn >= len(active):
            turn = 0
        self._turn = turn + 1
        self._add(active[turn], item, None)

    def _put_by_key(self, item: Any) -> None:
        key = self.spec.key
        if key is ITEM_ID:
            group = key_group(self._outbox.parent_id)
        else:
            assert callable(key)
            group = key_group(key(item))
        active = self.active
        self._add(active[owner(group, len(active))], item, None)

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
        if outbox.with_ids:
            channel.ids.append(outbox.child_id(self, copy))
        if outbox.origin_ns is None:
            channel.items.append(item)
        else:
            with outbox.lock:
                emit_ns = outbox.time.of(outbox.put_ns())
                channel.tags.append(Tag(len(channel.items), emit_ns, outbox.origin_ns))
                channel.items.append(item)
        if not self.lifetime_ns:
            outbox.ship(self, channel)
            return
        if not self.is_open:
            outbox.open(self)
        if len(channel.items) >= self.count_limit:
            outbox.ship(self, channel)


class Outbox:
    """All output streams of a worker."""

    def __init__(self, send: Callable[[bytes], None], replica: int, *, with_ids: bool) -> None:
        self.lock = threading.RLock()  # an item that cannot be shipped may be reported while shipping
        self.replica = replica
        self.born_ns = time.monotonic_ns()
        self.time = FlowTime()
        self.with_ids = with_ids
        self.streams: list[OutStream] = []
        self.origin_ns: int | None = None
        self.emitted_ns: int | None = None
        """Since when what is put has been there, by this machine's clock; None: since now."""
        self.parent_id: ItemId | None = None
        self.current_input = 0
        self.finished_input = 0
        self.acknowledged = 0
        self.waited_ns = 0
        self.behind_ns = 0
        self.wake_shipper: Callable[[int], None] = lambda _: None
        self.on_unshippable: Callable[[OutStream, Any, Exception], None] = _refuse
        self._send = send

    def begin_batch(self) -> None:
        """Inputs are numbered anew: nothing of the batch before may acknowledge any of this one."""
        with self.lock:
            self.current_input = self.finished_input = self.acknowledged = 0

    def begin_item(self, item_id: ItemId | None, origin_ns: int | None) -> None:
        """What is put from now on stems from this item."""
        self.parent_id = item_id
        self.origin_ns = origin_ns

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

    def put_ns(self) -> int:
        """Since when the item that is being put has been there."""
        return time.monotonic_ns() if self.emitted_ns is None else self.emitted_ns

    def useful_ns(self, started_ns: int, waited_before_ns: int) -> int:
        """Time since then without what was waited since then, for room in the output, by either thread.

        The shipper's thread may have waited for longer than it took the task's: no time is negative.
        """
        return max(0, time.monotonic_ns() - started_ns - (self.waited_ns - waited_before_ns))

    def open(self, stream: OutStream) -> None:
        """Start the lifetime of a stream's envelopes."""
        with self.lock:
            if stream.is_open:
                return
            stream.first_input = self.current_input
            stream.deadline_ns = self.put_ns() + stream.lifetime_ns
            stream.is_open = True
        self.wake_shipper(stream.deadline_ns)

    def ship(self, stream: OutStream, channel: Channel) -> None:
        """Ship one envelope now."""
        with self.lock:
            self._ship(stream, channel)

    def ship_due(self, now_ns: int) -> int | None:
        """Ship what has reached its lifetime; the next deadline, if there is one."""
        following: int | None = None
        for stream in self.streams:
            if not stream.is_open:
                continue
            if stream.deadline_ns <= now_ns:
                self._ship_all(stream)
            elif following is None or stream.deadline_ns < following:
                following = stream.deadline_ns
        return following

    def flush(self) -> None:
        """Ship everything."""
        for stream in self.streams:
            self._ship_all(stream)

    def acknowledge(self, mark: bytes = b"") -> None:
        """Tell the bridge which inputs are done, if that has changed since it last heard of it."""
        with self.lock:
            done = self.done_input()
            if done > self.acknowledged or mark:
                self.acknowledged = max(self.acknowledged, done)
                self._send(ack_frame(self.acknowledged, mark))

    def done_input(self) -> int:
        """The last input that is processed and of which nothing waits in an open envelope."""
        done = self.finished_input
        for stream in self.streams:
            if stream.is_open and stream.first_input <= done:
                done = stream.first_input - 1
        return done

    def send(self, data: bytes) -> None:
        """A frame that is no envelope."""
        with self.lock:
            self._send(data)

    def _ship_all(self, stream: OutStream) -> None:
        with self.lock:
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
        ids = None
        if self.with_ids:
            ids = channel.ids[:count]
            del channel.ids[:count]
        parts = self._parts(stream, _Part(items, ids, tags))
        last = len(parts) - 1
        for index, (part, body) in enumerate(parts):
            if acknowledging and index == last:
                self.acknowledged = max(self.acknowledged, self.done_input())
            self._send_envelope(stream, channel, part, body)

    def _send_envelope(self, stream: OutStream, channel: Channel, part: "_Part", body: bytes) -> None:
        count = len(part.items)
        if stream.lifetime_ns:
            fitting = stream.spec.batch_bytes * count // max(1, len(body))
            stream.count_limit = max(1, min(fitting, _GROWTH * max(count, _FIRST_COUNT_LIMIT)))
        envelope = encode(
            channel.address,
            stream.number,
            self.replica,
            self.time.now_ns() if part.tags else UNKNOWN_NS,
            body,
            count,
            stream.spec.codec,
            part.tags,
            part.ids,
        )
        stream.shipped_items += count
        stream.shipped_envelopes += 1
        started_ns = time.monotonic_ns()
        self._send(out_frame(self.acknowledged, channel.target, channel.place, envelope))
        took_ns = time.monotonic_ns() - started_ns
        if took_ns > _PROMPT_NS:
            self.waited_ns += took_ns

    def _parts(self, stream: OutStream, part: "_Part") -> list[tuple["_Part", bytes]]:
        """Code the items, in as many envelopes as it takes.

        What cannot be coded, or is too large, is halved until the items at fault stand alone: those are
        handed to the error policy, and all others travel in their order.
        """
        try:
            return [(part, _dump(part.items, stream))]
        except Exception as problem:  # noqa: BLE001 - a user's item may raise anything when coded
            count = len(part.items)
            if count > 1:
                halves = part.cut(0, count // 2), part.cut(count // 2, count)
                return [coded for half in halves for coded in self._parts(stream, half)]
            self.on_unshippable(stream, part.items[0], problem)
            return []


class _Part(NamedTuple):
    """Items that go into one envelope, with their ids and tags."""

    items: list[Any]
    ids: list[ItemId | None] | None
    tags: list[Tag]

    def cut(self, start: int, end: int) -> "_Part":
        """The items from `start` up to `end`."""
        return _Part(
            self.items[start:end],
            None if self.ids is None else self.ids[start:end],
            [
                msgspec.structs.replace(tag, item=tag.item - start)
                for tag in self.tags
                if start <= tag.item < end
            ],
        )


def _dump(items: list[Any], stream: OutStream) -> bytes:
    body = dump_items(items, stream.spec.codec)
    if len(body) > ITEM_LIMIT_BYTES:
        raise Unshippable(
            f"an item of {len(body) >> 20} MiB is larger than the {ITEM_LIMIT_BYTES >> 20} MiB"
            f" that stream {stream.spec.name} carries; send a reference to it, or parts of it"
        )
    return body


def _refuse(_stream: OutStream, _item: Any, problem: Exception) -> None:
    raise problem
