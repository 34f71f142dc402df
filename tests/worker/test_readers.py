"""Several splits that one source worker reads."""

import socket
from collections.abc import Collection, Iterator, Mapping
from typing import TYPE_CHECKING, Any, cast

import msgspec
import pytest

from penstock.flow.graph import Stream, Task
from penstock.flow.parallelism import fixed
from penstock.io.protocol import SourceClock
from penstock.stats.clock_offset import Exchange
from penstock.wire import frames as wire
from penstock.wire.envelope import Envelope, decode
from penstock.wire.ids import origin_of
from penstock.wire.orders import Position, Reached, SourceOrder
from penstock.wire.routes import StreamRoute
from penstock.worker import sourcing as sourcing_module
from penstock.worker.outbox import Outbox, OutStream
from penstock.worker.readers import Readers
from penstock.worker.sourcing import Sourcing
from tests.worker.test_sourcing import Counted

if TYPE_CHECKING:
    from penstock.worker.measurements import Measurements

ORDER = {"a": Position(0, 0), "b": Position(0, 0), "c": Position(0, 0)}


class Shelf:
    """A source with lists of items; each `read` gives the next item, None at the end unless it is endless."""

    name = "shelf"

    def __init__(self, parts: Mapping[str, list[Any]], *, endless: bool = False) -> None:
        self.parts = parts
        self.endless = endless
        self.log: list[str] = []

    @property
    def splits(self) -> tuple[str, ...]:
        return tuple(self.parts)

    def start(self, split: str) -> int:
        return 0

    def open(self, split: str, offset: int, clock: SourceClock) -> "ShelfReader":
        self.log.append(f"open {split} at {offset}")
        return ShelfReader(self, split, offset)


class ShelfReader:
    def __init__(self, shelf: Shelf, split: str, offset: int) -> None:
        self.shelf, self.split, self.offset = shelf, split, offset

    def read(self, limit: int, wait_s: float) -> tuple[list[Any], None] | None:
        items = self.shelf.parts[self.split]
        if self.offset == len(items):
            return ([], None) if self.shelf.endless else None
        self.offset += 1
        return [items[self.offset - 1]], None

    def close(self) -> None:
        self.shelf.log.append(f"close {self.split}")


class Together(Shelf):
    """One that waits for all of its splits at once."""

    def open_jointly(self, offsets: Mapping[str, int]) -> "TogetherReader":
        self.log.append(f"open {', '.join(offsets)}")
        return TogetherReader(self, offsets)


class TogetherReader:
    def __init__(self, shelf: Shelf, offsets: Mapping[str, int]) -> None:
        self.shelf = shelf
        self.readers = {split: ShelfReader(shelf, split, offset) for split, offset in offsets.items()}

    def await_any(self, limit: int, wait_s: float) -> Collection[str]:
        return [name for name, one in self.readers.items() if one.offset < len(self.shelf.parts[name])]

    def close(self) -> None:
        self.shelf.log.append("close all")


class Loop:
    """The sourcing loop of one replica, and a bridge that writes everything down."""

    def __init__(self, source: Shelf) -> None:
        self.envelopes: list[Envelope] = []
        self.marks: list[dict[str, Position]] = []
        self.outbox = Outbox(self._take, 0, with_ids=True)
        self.outbox.time.learn(Exchange(0, 0, 0, 0))
        stream = OutStream(self.outbox, Stream("s->t", "s", "out", "t"), 0)
        stream.lay(StreamRoute(1, 0, 1, 0, False), 1)
        self.outbox.streams = [stream]
        task = Task("s", "source", "source", source, fixed(1))
        self.sourcing = Sourcing(task, self.outbox, cast("Measurements", Counted()))
        ours, self.bridge = socket.socketpair()
        self.inbox = wire.Inbox(ours)
        self.sockets = (ours, self.bridge)

    def run(self, positions: Mapping[str, Position]) -> Reached:
        return self.sourcing.run(SourceOrder(dict(positions), dict(positions), 0), self.inbox)

    def items(self) -> list[Any]:
        return [item for envelope in self.envelopes for item in envelope.items]

    def ids(self) -> list[tuple[int, ...]]:
        return [made[:2] for envelope in self.envelopes for made in envelope.ids or [] if made]

    def _take(self, data: bytes) -> None:
        if data[4] == wire.OUT:
            self.envelopes.append(decode(data[18:]))
        else:
            self.marks.append(msgspec.json.decode(data[13:], type=dict[str, Position]))


@pytest.fixture
def loops(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[Loop]]:
    monkeypatch.setattr(sourcing_module, "_MARK_EVERY_NS", 0)
    made: list[Loop] = []
    yield made
    for loop in made:
        for end in loop.sockets:
            end.close()


def loop_of(loops: list[Loop], source: Shelf) -> Loop:
    loops.append(Loop(source))
    return loops[-1]


def test_splits_take_turns_and_each_has_its_own_position_and_ids(loops: list[Loop]) -> None:
    loop = loop_of(loops, Shelf({"a": [1, 2, 3], "b": [10], "c": [20, 21]}))
    reached = loop.run(ORDER)
    assert loop.items() == [1, 10, 20, 2, 21, 3]
    assert reached == Reached(
        {"a": Position(3, 3, done=True), "b": Position(1, 1, done=True), "c": Position(2, 2, done=True)},
        done=True,
    )
    a, b, c = (origin_of("s", split) for split in "abc")
    assert loop.ids() == [(a, 0), (b, 0), (c, 0), (a, 1), (c, 1), (a, 2)]


def test_a_mark_tells_of_every_split(loops: list[Loop]) -> None:
    loop = loop_of(loops, Shelf({"a": [1], "b": [10, 11], "c": []}))
    loop.run({**ORDER, "c": Position(7, 0, done=True)})
    at_end = {"a": Position(1, 1), "b": Position(2, 2), "c": Position(7, 0, done=True)}
    assert loop.marks[0] == {**at_end, "b": Position(1, 1)}
    assert loop.marks[-1] == at_end


def test_a_split_that_has_run_dry_leaves_the_others_alone(loops: list[Loop]) -> None:
    loop = loop_of(loops, Shelf({"a": [1, 2], "b": []}))
    loop.run({"a": Position(0, 0), "b": Position(4, 4, done=True)})
    assert loop.items() == [1, 2]


def test_readers_of_splits_that_stay_go_on(loops: list[Loop]) -> None:
    source = Shelf({"a": [1], "b": [2], "c": [3]}, endless=True)
    loop = loop_of(loops, source)
    loop.bridge.sendall(wire.frame(wire.END, b"\0"))
    assert loop.run({"a": Position(0, 0), "b": Position(0, 0)}).positions["a"] == Position(0, 0)
    loop.bridge.sendall(wire.frame(wire.END, b"\0"))
    loop.run({"b": Position(0, 0), "c": Position(1, 1)})
    assert source.log == ["open a at 0", "open b at 0", "close a", "open c at 1"]


def test_a_replica_may_have_nothing_to_read(loops: list[Loop]) -> None:
    assert loop_of(loops, Shelf({})).run({}) == Reached({}, done=True)


def test_splits_that_are_awaited_together_are_opened_and_closed_together(loops: list[Loop]) -> None:
    source = Together({"a": [1, 2], "b": [10]}, endless=True)
    loop = loop_of(loops, source)
    read, sourcing = loop.sourcing.read, loop.sourcing

    def read_and_end() -> bool:
        if not (went_on := read()):
            loop.bridge.sendall(wire.frame(wire.END, b"\0"))
        return went_on

    sourcing.read = read_and_end  # type: ignore[method-assign]
    reached = loop.run({"a": Position(0, 0), "b": Position(0, 0)})
    assert loop.items() == [1, 10, 2]
    loop.run(reached.positions)
    assert source.log == ["open a, b"]
    loop.run({"a": reached.positions["a"]})
    assert source.log == ["open a, b", "close all", "open a"]


def test_who_has_nothing_to_read_is_behind_with_nothing() -> None:
    """Or what the source is behind would be known of no replica, because it is not known of this one."""
    assert Readers("s", Together({})).lag_items == 0
    assert Readers("s", Shelf({})).lag_items is None
