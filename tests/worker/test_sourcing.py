"""The loop of a source worker: what it sends, where it stands, and from where it would go on."""

import socket
import struct
import threading
import time
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any, cast

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.flow.graph import Stream, Task
from penstock.flow.parallelism import elastic
from penstock.flow.record import Metadata, Record
from penstock.io.protocol import Refused, SourceClock
from penstock.stats.clock_offset import Exchange
from penstock.wire import frames as wire
from penstock.wire.envelope import Envelope, decode
from penstock.wire.ids import ItemId, origin_of, stream_code
from penstock.wire.orders import Position, SourceOrder
from penstock.wire.routes import StreamRoute
from penstock.worker import sourcing as sourcing_module
from penstock.worker.flow_time import FlowTime
from penstock.worker.outbox import Outbox, OutStream
from penstock.worker.sourcing import Sourcing

if TYPE_CHECKING:
    from penstock.worker.measurements import Measurements

BEGINNING = Position(0, 0)
AHEAD_NS = 5_000_000_000
Read = tuple[list[Any], list[int] | None]


def _nothing() -> None:
    pass


class Script:
    """A source, and its own reader: gives what it was told to, chunk by chunk, then ends or says nothing."""

    name = "script"
    splits = ("left", "right")

    def __init__(self, chunks: list[list[Any]], *, endless: bool = False, due: bool = False) -> None:
        self.chunks = chunks
        self.endless = endless
        self.due = due
        self.offset = 0
        self.opened: list[tuple[str, int, SourceClock]] = []
        self.closed = 0
        self.on_idle: Callable[[], None] = _nothing

    def start(self, split: str) -> int:
        return 0

    def open(self, split: str, offset: int, clock: SourceClock) -> "Script":
        self.opened.append((split, offset, clock))
        self.offset = offset
        return self

    def read(self, limit: int, wait_s: float) -> Read | None:
        assert limit > 0
        if self.offset == len(self.chunks):
            self.on_idle()
            return ([], None) if self.endless else None
        items = self.chunks[self.offset]
        self.offset += 1
        return items, [1000 + item for item in items] if self.due else None

    def close(self) -> None:
        self.closed += 1


class Records(Script):
    """One whose items have numbers of their own, ten apart; "?" cannot be made an item."""

    def __init__(self, chunks: list[list[Any]]) -> None:
        super().__init__(chunks)
        self.ordinals: list[int] = []
        self.refused: list[Refused] = []
        self.lag_items: int | None = None
        self.began: list[int] = []

    def committed(self, offset: int) -> None:
        self.began.append(offset)

    def read(self, limit: int, wait_s: float) -> Read | None:
        first, got = 100 * self.offset, super().read(limit, wait_s)
        self.ordinals, self.refused = [], []
        if got is None:
            return None
        self.lag_items = len(self.chunks) - self.offset
        for place, item in enumerate(got[0]):
            if item == "?":
                self.refused.append(Refused(item, ValueError("what?"), first + 10 * place))
            else:
                self.ordinals.append(first + 10 * place)
        return [item for item in got[0] if item != "?"], None


class Counted:
    """What a source measures."""

    def __init__(self) -> None:
        self.items = 0
        self.lag_items: int | None = None
        self.lags_ns: list[int] = []
        self.due_ns: list[int | None] = []
        self.useful_ns = 0

    def sent_late(self, lag_ns: int) -> None:
        self.lags_ns.append(lag_ns)

    def source_read(self, count: int, useful_ns: int, due_ns: int | None) -> None:
        self.items += count
        self.useful_ns += useful_ns
        self.due_ns.append(due_ns)


class Bench:
    """A sourcing loop between a scripted source and a bridge that writes everything down."""

    def __init__(
        self, source: Script, *, lifetime_ms: float = 0.0, ids: bool = False, replica: int = 1
    ) -> None:
        self.source = source
        self.envelopes: list[Envelope] = []
        self.marks: list[tuple[int, Position]] = []
        self.measured = Counted()
        self.outbox = Outbox(self._take, replica, with_ids=ids)
        self.outbox.time.learn(Exchange(0, 0, 0, 0))
        stream = OutStream(self.outbox, Stream("s->t", "s", "out", "t", batch_lifetime_ms=lifetime_ms), 0)
        stream.lay(StreamRoute(1, 0, 1, 0, False), 1)
        self.outbox.streams = [stream]
        ours, self.bridge = socket.socketpair()
        self._sockets = (ours, self.bridge)
        task = Task("s", "source", "source", source, elastic(1, 4, initial=2))
        self.refused: list[tuple[Any, str]] = []
        self.sourcing = Sourcing(
            task,
            self.outbox,
            cast("Measurements", self.measured),
            refuse=lambda raw, problem: self.refused.append((raw, str(problem))),
        )
        self.inbox = wire.Inbox(ours)

    def run(
        self, at: Position, began: Position = BEGINNING, started_at_ns: int = 0, split: str = "right"
    ) -> Position:
        reached = self.sourcing.run(SourceOrder({split: at}, {split: began}, started_at_ns), self.inbox)
        assert reached.done == reached.positions[split].done
        return reached.positions[split]

    def items(self) -> list[Any]:
        return [item for envelope in self.envelopes for item in envelope.items]

    def ids(self) -> list[ItemId | None]:
        return [i for envelope in self.envelopes for i in envelope.ids or []]

    def ask_to_end(self) -> None:
        self.bridge.sendall(wire.frame(wire.END, b"\0"))

    def close(self) -> None:
        for end in self._sockets:
            end.close()

    def _take(self, data: bytes) -> None:
        if data[4] == wire.OUT:
            self.envelopes.append(decode(data[18:]))
        else:
            (done,) = struct.unpack_from("<q", data, 5)
            ((_, position),) = msgspec.json.decode(data[13:], type=dict[str, Position]).items()
            self.marks.append((done, position))


@pytest.fixture
def benches() -> Iterator[list[Bench]]:
    made: list[Bench] = []
    yield made
    for bench in made:
        bench.close()


def bench_of(benches: list[Bench], source: Script, **options: Any) -> Bench:
    benches.append(Bench(source, **options))
    return benches[-1]


@given(st.lists(st.lists(st.integers(), max_size=4), max_size=6), st.sampled_from([0.0, 1000.0]))
def test_everything_is_sent_in_order_and_the_end_is_known(
    chunks: list[list[int]], lifetime_ms: float
) -> None:
    bench = Bench(Script(chunks), lifetime_ms=lifetime_ms)
    reached = bench.run(Position(7, 0))
    bench.outbox.flush()
    items = [item for chunk in chunks for item in chunk]
    assert bench.items() == items
    assert reached == Position(7 + len(items), len(chunks), done=True)
    assert bench.measured.items == len(items)
    bench.close()


def test_records_are_unpacked_and_the_next_read_may_have_none(benches: list[Bench]) -> None:
    records = [Record(1, {"a": b"b"}, 5, b"k"), Record(2), Record(3, timestamp=6)]
    bench = bench_of(benches, Script([[0], records, [4], [Record(5)]]))
    bench.run(Position(0, 0))
    assert bench.items() == [0, 1, 2, 3, 4, 5]
    assert [envelope.metadata for envelope in bench.envelopes] == [
        None,
        [Metadata({"a": b"b"}, 5, b"k")],
        None,
        [Metadata(timestamp=6)],
        None,
        None,
    ]


def test_records_and_other_items_in_one_read_are_refused(benches: list[Bench]) -> None:
    bench = bench_of(benches, Script([[Record(1), 2]]))
    with pytest.raises(TypeError) as caught:
        bench.run(Position(0, 0))
    assert str(caught.value) == (
        'source "s" read records together with other items, such as 2;'
        " all items of one read must be records, or none"
    )
    assert bench.items() == []


def test_the_bridge_ends_a_batch(benches: list[Bench]) -> None:
    bench = bench_of(benches, Script([[1, 2], [3]], endless=True))
    bench.source.on_idle = bench.ask_to_end
    assert bench.run(Position(0, 0)) == Position(3, 2)
    assert bench.items() == [1, 2, 3]


def test_a_paused_source_reads_nothing_and_can_be_ended(benches: list[Bench]) -> None:
    bench = bench_of(benches, Script([[1], [2]]))
    bench.sourcing.paused = True
    ends = threading.Timer(0.1, bench.ask_to_end)
    ends.start()
    assert bench.run(Position(0, 0)) == Position(0, 0)
    resumes = threading.Timer(0.1, setattr, (bench.sourcing, "paused", False))
    resumes.start()
    assert bench.run(Position(0, 0)) == Position(2, 2, done=True)
    assert bench.items() == [1, 2]


def test_what_was_read_before_a_pause_is_marked_in_it(
    benches: list[Bench], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sourcing_module, "_MARK_EVERY_NS", 20_000_000)
    bench = bench_of(benches, Script([[1], [2], [3]]))
    read = bench.source.read

    def pause_behind_the_second(limit: int, wait_s: float) -> Read | None:
        bench.sourcing.paused = bench.source.offset == 1
        return read(limit, wait_s)

    bench.source.read = pause_behind_the_second  # type: ignore[method-assign]
    threading.Timer(0.2, bench.ask_to_end).start()
    bench.run(Position(0, 0))
    assert [position for _, position in bench.marks][-1] == Position(2, 2)


def test_a_closed_channel_ends_it(benches: list[Bench]) -> None:
    bench = bench_of(benches, Script([[1]], endless=True))
    bench.source.on_idle = bench.bridge.close
    with pytest.raises(wire.ChannelClosed):
        bench.run(Position(0, 0))


def test_a_source_that_has_run_dry_stays_so(benches: list[Bench]) -> None:
    bench = bench_of(benches, Script([[1]]))
    done = Position(1, 1, done=True)
    assert bench.run(done) == done
    assert bench.items() == []


def test_the_reader_goes_on_unless_the_batch_begins_elsewhere(benches: list[Bench]) -> None:
    bench = bench_of(benches, Script([[1], [2], [3]], endless=True))
    bench.source.on_idle = bench.ask_to_end
    reached = bench.run(Position(0, 0))
    bench.run(reached)
    assert len(bench.source.opened) == 1, "one reader for both batches"
    bench.run(Position(1, 1))
    assert [(split, offset) for split, offset, _ in bench.source.opened] == [("right", 0), ("right", 1)]
    assert bench.source.closed == 1
    assert bench.items() == [1, 2, 3, 2, 3]


def test_time_zero_and_the_first_offset_of_the_run_reach_the_reader(benches: list[Bench]) -> None:
    """By the clock of this machine, which is five seconds ahead of the flow's."""
    bench = bench_of(benches, Script([]))
    bench.outbox.time = FlowTime()
    bench.outbox.time.learn(Exchange(AHEAD_NS, 0, 0, AHEAD_NS))
    bench.run(Position(40, 0), began=Position(30, 3), started_at_ns=70)
    ((_, _, clock),) = bench.source.opened
    assert clock == SourceClock(run_start_ns=70 + AHEAD_NS, run_offset=3)


def test_ids_are_origin_and_ordinal(benches: list[Bench]) -> None:
    bench = bench_of(benches, Script([["a", "b"], ["c"]]), ids=True)
    bench.run(Position(10, 0))
    origin, first = origin_of("s", "right"), stream_code("s->t")
    assert bench.ids() == [(origin, 10, first), (origin, 11, first), (origin, 12, first)]


def test_records_have_ids_of_their_own_numbers(benches: list[Bench]) -> None:
    bench = bench_of(benches, Records([["a", "b"], ["c"]]), ids=True)
    bench.run(Position(10, 0))
    origin = origin_of("s", "right")
    assert [made[:2] for made in bench.ids() if made] == [(origin, 0), (origin, 10), (origin, 100)]


def test_records_that_are_no_items_are_refused_and_passed(
    benches: list[Bench], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sourcing_module, "_MARK_EVERY_NS", 0)
    source = Records([["a", "?", "b"], ["?"], ["c"]])
    bench = bench_of(benches, source, ids=True)
    assert bench.run(Position(0, 0)) == Position(3, 3, done=True)
    assert bench.items() == ["a", "b", "c"]
    assert [made[1] for made in bench.ids() if made] == [0, 20, 200]
    assert bench.refused == [("?", "what?")] * 2
    assert [position for _, position in bench.marks] == [Position(2, 1), Position(2, 2), Position(3, 3)]
    assert bench.measured.lag_items == 0


class Watching(Bench):
    """Notes how much counts as processed, and how much as not sent, when an envelope is shipped."""

    def __init__(self, source: Script) -> None:
        self.seen: list[tuple[int, int | None]] = []
        super().__init__(source)

    def _take(self, data: bytes) -> None:
        if data[4] == wire.OUT:
            self.seen.append((self.measured.items, self.measured.lag_items))


def test_what_was_read_is_behind_until_it_counts_as_processed(benches: list[Bench]) -> None:
    bench = Watching(Records([["a", "b"], ["c"], ["d"]]))
    benches.append(bench)
    bench.run(BEGINNING)
    assert bench.seen[0] == (0, 2 + 2), "two chunks are left, and two items are on their way"


def test_a_reader_of_records_hears_where_batches_begin(benches: list[Bench]) -> None:
    source = Records([["a"], ["b"]])
    bench = bench_of(benches, source)
    bench.run(Position(0, 0))
    bench.run(Position(1, 1))
    assert source.began == [0, 1]


def test_the_ids_of_a_split_do_not_depend_on_which_replica_reads_it(benches: list[Bench]) -> None:
    found = {}
    for replica, split in [(0, "left"), (1, "left"), (0, "right")]:
        bench = bench_of(benches, Script([["a", "b"]]), ids=True, replica=replica)
        bench.run(BEGINNING, split=split)
        found[replica, split] = bench.ids()
    assert found[0, "left"] == found[1, "left"]
    assert not {*found[0, "left"]} & {*found[0, "right"]}


def test_marks_say_where_a_successor_goes_on(benches: list[Bench], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sourcing_module, "_MARK_EVERY_NS", 0)
    bench = bench_of(benches, Script([["a", "b"], [], ["c"]]))
    bench.run(Position(0, 0))
    assert bench.marks == [(1, Position(2, 1)), (2, Position(3, 3))]


def test_marks_never_pass_an_item_that_waits(benches: list[Bench], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sourcing_module, "_MARK_EVERY_NS", 0)
    bench = bench_of(benches, Script([["a"], ["b"], ["c"]]), lifetime_ms=3_600_000)
    bench.run(Position(0, 0))
    assert bench.marks == []
    bench.outbox.flush()
    bench.outbox.acknowledge(b'{"right": {"ordinal": 3, "offset": 3}}')
    assert bench.marks == [(3, Position(3, 3))]


@pytest.mark.parametrize("share", [0.0, 0.02, 0.3, 1.0])
def test_about_the_asked_share_is_tagged_with_its_due_time(benches: list[Bench], share: float) -> None:
    """A binomial count lies within five standard deviations; the seed makes it the same every time."""
    count = 20_000
    source = Script([list(range(start, start + 500)) for start in range(0, count, 500)], due=True)
    bench = bench_of(benches, source, lifetime_ms=3_600_000)
    bench.sourcing.sample(share)
    bench.run(Position(0, 0))
    bench.outbox.flush()
    tags = [
        (envelope.items[tag.item], tag.origin_ns) for envelope in bench.envelopes for tag in envelope.tags
    ]
    assert abs(len(tags) - share * count) <= 5 * (share * (1 - share) * count) ** 0.5 + (0 < share < 1)
    assert all(origin_ns == 1000 + item for item, origin_ns in tags)
    assert len(bench.measured.lags_ns) == len(tags)


def test_due_times_are_told_by_the_clock_of_the_driver(benches: list[Bench]) -> None:
    bench = bench_of(benches, Script([[0, 1]], due=True))
    bench.outbox.time = FlowTime()
    bench.outbox.time.learn(Exchange(AHEAD_NS, 0, 0, AHEAD_NS))
    bench.sourcing.sample(1.0)
    bench.run(Position(0, 0))
    tags = [tag for envelope in bench.envelopes for tag in envelope.tags]
    assert [tag.origin_ns for tag in tags] == [1000 - AHEAD_NS, 1001 - AHEAD_NS]
    assert all(abs(time.monotonic_ns() - AHEAD_NS - tag.emit_ns) < 60_000_000_000 for tag in tags)


def test_a_schedule_needs_the_clock_of_the_driver(benches: list[Bench]) -> None:
    """Without it there is no time zero; the executor asks for it before it starts a batch."""
    bench = bench_of(benches, Script([[0]]))
    bench.outbox.time = FlowTime()
    with pytest.raises(AssertionError, match="a source is started after its executor has asked the driver"):
        bench.run(BEGINNING)
    assert bench.items() == []


def test_a_fast_source_tags_no_more_than_is_worth_it(
    benches: list[Bench], monkeypatch: pytest.MonkeyPatch
) -> None:
    """As if a second passed with every chunk, each of which takes far less than that."""
    monkeypatch.setattr(sourcing_module, "_MARK_EVERY_NS", 0)
    monkeypatch.setattr(sourcing_module, "_AFFORD_EVERY_NS", 0)
    count = 20_000
    source = Script([list(range(start, start + 500)) for start in range(0, count, 500)])
    bench = bench_of(benches, source, lifetime_ms=3_600_000)
    bench.sourcing.sample(0.99)
    bench.run(Position(100, 0))
    assert 400 <= len(bench.measured.lags_ns) < count / 2


def test_another_share_takes_effect_at_once(benches: list[Bench]) -> None:
    bench = bench_of(benches, Script([[0, 1, 2], [3, 4, 5]]))
    bench.sourcing.sample(1e-12)
    read = bench.source.read

    def then_all(limit: int, wait_s: float) -> Read | None:
        if bench.source.offset == 1:
            bench.sourcing.sample(1.0)
        return read(limit, wait_s)

    bench.source.read = then_all  # type: ignore[method-assign]
    bench.run(Position(0, 0))
    tagged = [envelope.items[0] for envelope in bench.envelopes if envelope.tags]
    assert tagged == [0, 3, 4, 5]


def test_the_pause_of_a_batching_source_counts_as_time_in_the_envelope(benches: list[Bench]) -> None:
    """Its items are read late on purpose; they were there when they were due, and leave on time."""
    due_ns = time.monotonic_ns() + 20_000_000

    class Late(Script):
        def read(self, limit: int, wait_s: float) -> Read | None:
            got = super().read(limit, wait_s)
            if got is None or not got[0]:
                return got
            time.sleep(max(0.0, (due_ns + 5_000_000 - time.monotonic_ns()) * 1e-9))
            return got[0], [due_ns for _ in got[0]]

    bench = bench_of(benches, Late([[1], [2]]), lifetime_ms=400.0)
    bench.sourcing.sample(1.0)
    bench.run(BEGINNING)
    (stream,) = bench.outbox.streams
    assert stream.deadline_ns == due_ns + 400_000_000
    assert bench.measured.lags_ns[0] == 0
    assert bench.measured.lags_ns[1] > 0, "the second one was due before the pause: that is real delay"
    bench.outbox.flush()
    assert bench.envelopes[0].tags[0].emit_ns == due_ns


class Slow(Script):
    """Each read takes a while of which nothing is spent in the CPU."""

    def read(self, limit: int, wait_s: float) -> Read | None:
        time.sleep(0.05)
        return super().read(limit, wait_s)


def test_reading_is_useful_time_unless_it_waits_for_items(
    benches: list[Bench], monkeypatch: pytest.MonkeyPatch
) -> None:
    """One that fills its limit did not wait, and neither did one that was not allowed to."""
    waiting = bench_of(benches, Slow([[1, 2], [3]]))
    waiting.run(Position(0, 0))
    monkeypatch.setattr(sourcing_module, "_CHUNK", 2)
    filling = bench_of(benches, Slow([[1, 2], [3]]))
    filling.run(Position(0, 0))
    monkeypatch.setattr(sourcing_module, "_WAIT_S", 0.0)
    working = bench_of(benches, Slow([[1, 2], [3]]))
    working.run(Position(0, 0))
    useful_ms = [round(bench.measured.useful_ns / 1e6) for bench in (waiting, filling, working)]
    assert useful_ms[0] < 50 <= useful_ms[1] < 100 <= useful_ms[2]
