"""Headers, timestamps and keys of items on their way through a flow."""

import asyncio
import threading
from collections.abc import Iterator
from typing import Any

import pytest

import penstock
from penstock import Record
from penstock.flow.graph import Stream
from penstock.flow.record import Metadata
from penstock.testing import run
from penstock.wire.envelope import Envelope, decode
from penstock.wire.frames import read_out
from penstock.wire.routes import StreamRoute
from penstock.worker.context import Context, Out
from penstock.worker.outbox import Outbox, OutStream


class Given:
    splits = ("all",)


class BoomError(Exception):
    """What a task raises below."""


class Seen:
    """Sends what it sees of an item."""

    def open(self, context: Context) -> None:
        self.context = context

    def process(self, item: Any, out: Out) -> None:
        out((item, dict(self.context.headers), self.context.timestamp, self.context.key))


class Marks:
    """Sends an item as it came, one with another header, and one as it came again."""

    def open(self, context: Context) -> None:
        self.context = context

    def process(self, item: int, out: Out) -> None:
        out(item)
        out.send(Record(item + 1, headers={**self.context.headers, "mark": b"%d" % item}))
        out(item + 2)


class Late:
    every = "1 s"

    def process(self, item: int, out: Out) -> None:
        """Only the timer sends."""

    def timer(self, out: Out) -> None:
        out("timer")
        out.send(Record("told", timestamp=5))


def identity(item: Any) -> Any:
    return item


def drop(item: Any) -> None:
    """The end of the flows below."""


def odd(item: int) -> bool:
    return item % 2 == 1


def twice(item: int) -> list[int]:
    return [item, item + 10]


def doubled(items: list[int]) -> list[list[int]]:
    return [[item, item] for item in items]


def fails(item: int) -> int:
    raise BoomError


def flow_of(*, ids: bool = False) -> tuple[penstock.Flow, Any]:
    flow = penstock.Flow("marked", ids=ids)
    given: Any = Given()
    return flow, flow.source(given, name="numbers")


RECORDS = [
    Record(1, {"trace": b"one"}, 1001, b"k1"),
    2,
    Record(3, {"trace": b"three"}),
    Record(4, timestamp=1004),
]

AS_THEY_CAME = [
    (1, {"trace": b"one"}, 1001, b"k1"),
    (2, {}, None, None),
    (3, {"trace": b"three"}, None, None),
    (4, {}, 1004, None),
]


def told(arrivals: Any) -> list[tuple[Any, ...]]:
    return [(one.item, one.headers, one.timestamp, one.key) for one in arrivals]


@pytest.mark.parametrize("lifetime", ["0 ms", "10 ms"])
@pytest.mark.parametrize("ids", [False, True])
def test_metadata_go_through_functions(lifetime: str, ids: bool) -> None:
    flow, numbers = flow_of(ids=ids)
    made = numbers.batched(lifetime).map(identity).batched(lifetime).filter(odd)
    made.batched(lifetime).flat_map(twice).batched(lifetime).sink(drop, name="out")
    assert told(run(flow, {"numbers": RECORDS}).arrivals["out"]) == [
        (1, {"trace": b"one"}, 1001, b"k1"),
        (11, {"trace": b"one"}, 1001, b"k1"),
        (3, {"trace": b"three"}, None, None),
        (13, {"trace": b"three"}, None, None),
    ]


@pytest.mark.parametrize("chained", [False, True])
@pytest.mark.parametrize("size", [1, 3, 100])
@pytest.mark.parametrize("ids", [False, True])
def test_a_result_of_a_batch_has_what_its_item_had(ids: bool, size: int, chained: bool) -> None:
    flow, numbers = flow_of(ids=ids)
    first = numbers.batched("10 ms").map(identity, name="first")
    lists = (first.forward() if chained else first).map_batches(list, name="lists", size=size)
    lists.flat_map_batches(doubled, size=size).sink(drop, name="out")
    chains = [["first", "lists"]] if chained else []
    assert told(run(flow, {"numbers": RECORDS}, chains=chains).arrivals["out"]) == [
        one for item in AS_THEY_CAME for one in [item] * 2
    ]


class Awaits:
    """The same as `Seen`, after a wait that is the longer the earlier an item came; and a mark of its own."""

    async def open(self, context: Context) -> None:
        self.context = context

    async def process(self, item: int, out: Out) -> None:
        await asyncio.sleep(0.1 / item)
        out((item, dict(self.context.headers), self.context.timestamp, self.context.key))
        out.send(Record(item, headers={"mark": b"%d" % item}))


@pytest.mark.parametrize("ordered", [True, False])
def test_a_call_knows_its_own_metadata(ordered: bool) -> None:
    flow, numbers = flow_of()
    numbers.batched("10 ms").task(Awaits, ordered=ordered).sink(drop, name="out")
    arrivals = run(flow, {"numbers": RECORDS}).arrivals["out"]
    expected = [
        ((1, {"trace": b"one"}, 1001, b"k1"), {"trace": b"one"}, 1001, b"k1"),
        (1, {"mark": b"1"}, 1001, b"k1"),
        ((2, {}, None, None), {}, None, None),
        (2, {"mark": b"2"}, None, None),
        ((3, {"trace": b"three"}, None, None), {"trace": b"three"}, None, None),
        (3, {"mark": b"3"}, None, None),
        ((4, {}, 1004, None), {}, 1004, None),
        (4, {"mark": b"4"}, 1004, None),
    ]
    by_end = [*range(8)] if ordered else [6, 7, 4, 5, 2, 3, 0, 1]
    assert told(arrivals) == [expected[place] for place in by_end]


def test_a_retried_body_sends_records() -> None:
    flow, numbers = flow_of()
    numbers.task(Marks, retries=1).sink(drop, name="out")
    assert told(run(flow, {"numbers": RECORDS[:1]}).arrivals["out"])[1] == (
        2,
        {"trace": b"one", "mark": b"1"},
        1001,
        b"k1",
    )


@pytest.mark.parametrize("wiring", ["round_robin", "by_key", "broadcast"])
def test_metadata_go_by_every_wiring(wiring: str) -> None:
    flow, numbers = flow_of()
    wired = numbers.by_key(lambda item: item % 3) if wiring == "by_key" else getattr(numbers, wiring)()
    wired.task(Seen, parallelism=3).sink(drop, name="out")
    copies = 3 if wiring == "broadcast" else 1
    assert sorted(run(flow, {"numbers": RECORDS})["out"], key=lambda seen: int(seen[0])) == [
        one for item in AS_THEY_CAME for one in [item] * copies
    ]


@pytest.mark.parametrize("lifetime", ["0 ms", "10 ms"])
@pytest.mark.parametrize("chains", [[], [["Marks", "Seen"]], [["Marks", "Seen", "out"]]])
def test_a_task_sends_its_own_metadata_and_what_follows_is_as_it_came(
    chains: list[list[str]], lifetime: str
) -> None:
    flow, numbers = flow_of()
    marked = numbers.batched(lifetime).task(Marks).forward().batched(lifetime).task(Seen)
    marked.forward().batched(lifetime).sink(drop, name="out")
    result = run(flow, {"numbers": [Record(1, {"trace": b"one"}, 1001), 20]}, chains=chains)
    assert result["out"] == [
        (1, {"trace": b"one"}, 1001, None),
        (2, {"trace": b"one", "mark": b"1"}, 1001, None),
        (3, {"trace": b"one"}, 1001, None),
        (20, {}, None, None),
        (21, {"mark": b"20"}, None, None),
        (22, {}, None, None),
    ]


def test_a_chained_task_that_marks_leaves_the_item_of_the_one_before_as_it_was() -> None:
    flow, numbers = flow_of()
    twin = numbers.flat_map(twice, name="twice").forward().task(Marks)
    twin.forward().task(Seen).sink(drop, name="out")
    result = run(flow, {"numbers": [5]}, chains=[["twice", "Marks", "Seen"]])
    assert [(seen[0], seen[1]) for seen in result["out"]] == [
        (5, {}),
        (6, {"mark": b"5"}),
        (7, {}),
        (15, {}),
        (16, {"mark": b"15"}),
        (17, {}),
    ]


def test_what_a_timer_sends_has_none_unless_it_says_so() -> None:
    flow, numbers = flow_of()
    numbers.task(Late).sink(drop, name="out")
    result = run(flow, {"numbers": [Record(1, {"trace": b"one"}, 1001, b"k1")]}, until="1.5 s")
    assert told(result.arrivals["out"]) == [("timer", {}, None, None), ("told", {}, 5, None)]


def test_a_dead_letter_keeps_them() -> None:
    flow, numbers = flow_of()
    numbers.map(fails, on_error="dead_letter").sink(drop, name="out")
    letters = run(flow, {"numbers": RECORDS[:2]}).dead_letters
    assert [letter.metadata for letter in letters] == [Metadata({"trace": b"one"}, 1001, b"k1"), None]


def test_headers_cannot_be_changed_by_accident() -> None:
    class Changes(Seen):
        def process(self, item: Any, out: Out) -> None:
            self.context.headers["trace"] = b"mine"  # type: ignore[index]

    flow, numbers = flow_of()
    numbers.task(Changes).sink(drop, name="out")
    with pytest.raises(penstock.JobFailed, match="TypeError: 'mappingproxy' object does not support item"):
        run(flow, {"numbers": RECORDS})


@pytest.mark.parametrize(
    ("sent", "words"),
    [
        (3, 'TypeError: task "Sends": out.send takes a penstock.Record, not 3; or use out(item)'),
        (Record(3, {"a": 1}), "TypeError: header 'a' of a record must be bytes, not 1"),  # type: ignore[dict-item]
    ],
)
def test_what_cannot_be_sent_is_an_error_of_the_task(sent: Any, words: str) -> None:
    class Sends:
        def process(self, item: Any, out: Out) -> None:
            out.send(sent)

    flow, numbers = flow_of()
    numbers.task(Sends).sink(drop, name="out")
    with pytest.raises(penstock.JobFailed) as caught:
        run(flow, {"numbers": [1]})
    assert words in str(caught.value)


class Post:
    """An outbox with one stream, and what it sent."""

    def __init__(self, lifetime_ms: float = 0.0) -> None:
        self.envelopes: list[Envelope] = []
        self.bytes = 0
        self.outbox = Outbox(self._take, 0, with_ids=False)
        self.stream = OutStream(
            self.outbox, Stream("a->b", "a", "out", "b", batch_lifetime_ms=lifetime_ms), 0
        )
        self.stream.lay(StreamRoute(1, 0, 1, 0, local=False), 1)
        self.outbox.streams = [self.stream]

    def _take(self, data: bytes) -> None:
        out = read_out(data)
        if out is not None:
            self.envelopes.append(decode(out[1]))
            self.bytes += len(data)

    def sent(self) -> Iterator[tuple[Any, Metadata | None]]:
        for envelope in self.envelopes:
            yield from zip(envelope.items, envelope.metadata or [None] * len(envelope.items), strict=True)


def test_items_that_wait_when_the_first_metadata_come_have_none() -> None:
    post = Post(lifetime_ms=1e6)
    known = Metadata({"a": b"b"})
    for item in range(3):
        post.stream.put(item)
    post.outbox.begin_item(None, None, known)
    post.stream.put(3)
    post.outbox.begin_item(None, None)
    post.stream.put(4)
    post.outbox.flush()
    assert [*post.sent()] == [(0, None), (1, None), (2, None), (3, known), (4, None)]


def test_none_take_no_room() -> None:
    def bytes_of(known: Metadata | None, item: int) -> int:
        post.outbox.begin_item(None, None, known)
        before = post.bytes
        post.stream.put(item)
        return post.bytes - before

    post = Post()
    plain = bytes_of(None, 1)
    assert bytes_of(Metadata({"a": b"b"}), 2) > plain
    assert bytes_of(None, 3) == plain


def test_metadata_of_what_cannot_travel_do_not_slip() -> None:
    post = Post(lifetime_ms=1e6)
    refused: list[Any] = []
    post.outbox.on_unshippable = lambda _stream, item, _problem: refused.append(item)
    lock = threading.Lock()
    for number in range(20):
        post.outbox.begin_item(None, None, Metadata(timestamp=number) if number % 2 else None)
        post.stream.put(lock if number in (3, 4, 11) else number)
    post.outbox.flush()
    assert refused == [lock] * 3
    kept = [number for number in range(20) if number not in (3, 4, 11)]
    assert [*post.sent()] == [(n, Metadata(timestamp=n) if n % 2 else None) for n in kept]


def test_two_threads_keep_items_and_metadata_together() -> None:
    count, over = 20_000, threading.Event()
    post = Post(lifetime_ms=0.001)

    def ship() -> None:
        while not over.is_set():
            post.outbox.ship_due(2**62)

    shipper = threading.Thread(target=ship)
    shipper.start()
    for number in range(count):
        post.outbox.begin_item(None, None, Metadata(timestamp=number) if number % 3 == 1 else None)
        post.stream.put(number)
    over.set()
    shipper.join()
    post.outbox.flush()
    assert [*post.sent()] == [(n, Metadata(timestamp=n) if n % 3 == 1 else None) for n in range(count)]
