"""The outbox: who gets which item, when envelopes leave, and which inputs are done with."""

import struct
import threading
import time
from collections import Counter, defaultdict
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from penstock.flow.codec import Codec
from penstock.flow.graph import Stream, Wiring
from penstock.wire.divisions import spans_of
from penstock.wire.envelope import Envelope, decode
from penstock.wire.frames import ACK, BALANCED, OUT, REMOTE, choice_of, read_out
from penstock.wire.keys import KEY_GROUPS, key_group
from penstock.wire.routes import StreamRoute
from penstock.worker import parts
from penstock.worker.outbox import Outbox, OutStream

FAR_NS = 2**62


class Bridge:
    """Takes the frames of an outbox apart, as the bridge does."""

    def __init__(self) -> None:
        self.acknowledged: list[int] = []
        self.marks: list[bytes] = []
        self.envelopes: dict[int, list[Envelope]] = defaultdict(list)
        self.places: set[int] = set()

    def take(self, data: bytes) -> None:
        length, kind = struct.unpack_from("<IB", data)
        assert length == len(data) - 4
        (done,) = struct.unpack_from("<q", data, 5)
        self.acknowledged.append(done)
        if kind == ACK:
            self.marks.append(data[13:])
            return
        assert kind == OUT
        target, place = struct.unpack_from("<iB", data, 13)
        self.places.add(place)
        self.envelopes[target].append(decode(data[18:]))

    def items(self, target: int) -> list[Any]:
        return [item for envelope in self.envelopes[target] for item in envelope.items]

    def ids(self) -> list[Any]:
        return [i for sent in self.envelopes.values() for envelope in sent for i in envelope.ids or []]


def make(
    wiring: Wiring = "round_robin",
    *,
    pool: int = 3,
    lifetime_ms: float = 0.0,
    with_ids: bool = False,
    replica: int = 0,
    key: Any = None,
    local: bool = False,
    batch_bytes: int = 65536,
    codec: Codec = "pickle",
    balanced: bool = False,
    via: int | None = None,
    gathers: bool = False,
) -> tuple[Outbox, OutStream, Bridge]:
    bridge = Bridge()
    made = Outbox(bridge.take, replica, with_ids=with_ids, gathers=gathers)
    spec = Stream(
        "a->b",
        "a",
        "out",
        "b",
        wiring,
        key=key,
        codec=codec,
        batch_lifetime_ms=lifetime_ms,
        batch_bytes=batch_bytes,
        balanced=balanced,
    )
    stream = OutStream(made, spec, 4)
    stream.lay(StreamRoute(1, 0, pool, 0, local, via), pool)
    made.streams = [stream]
    return made, stream, bridge


def put_all(stream: OutStream, items: range | list[Any]) -> None:
    for item in items:
        stream.put(item)


@given(st.integers(1, 9), st.integers(0, 100))
def test_round_robin_is_even_and_in_turn(active: int, count: int) -> None:
    _, stream, bridge = make(pool=9)
    stream.activate(active)
    put_all(stream, range(count))
    for replica in range(9):
        assert bridge.items(replica) == (list(range(replica, count, active)) if replica < active else [])


@given(st.lists(st.integers(0, 50), max_size=100), st.integers(1, 5))
def test_a_key_has_one_receiver(keys: list[int], active: int) -> None:
    _, stream, bridge = make("key", pool=5, key=lambda item: item)
    stream.activate(active)
    put_all(stream, keys)
    seen = {replica: set(bridge.items(replica)) for replica in range(5)}
    assert sum(map(len, seen.values())) == len(set(keys))
    assert not any(seen[replica] for replica in range(active, 5))


def test_a_table_says_who_has_which_keys_and_what_was_sent_is_counted() -> None:
    _, stream, bridge = make("key", pool=3, key=lambda item: item)
    group = key_group(7)
    stream.activate(2, spans_of([1 if one == group else 0 for one in range(KEY_GROUPS)]))
    put_all(stream, [7, 1, 2, 3, 7])
    assert [bridge.items(replica) for replica in range(3)] == [[1, 2, 3], [7, 7], []]
    load = stream.by_key.take()
    assert load.groups == Counter(map(key_group, [7, 1, 2, 3, 7]))
    assert load.total == 5
    assert stream.by_key.take().total == 0, "told once"


def test_broadcast_reaches_all_active_replicas() -> None:
    _, stream, bridge = make("broadcast", pool=4)
    stream.activate(3)
    put_all(stream, range(5))
    assert [bridge.items(replica) for replica in range(4)] == [[*range(5)]] * 3 + [[]]


def test_forward_goes_to_the_replica_of_the_same_number() -> None:
    _, stream, bridge = make("forward", pool=4, replica=2, local=True)
    stream.activate(1)
    put_all(stream, range(5))
    assert bridge.items(2) == [*range(5)]
    assert bridge.places == {0}


def test_an_inactive_replica_still_gets_what_was_put_for_it() -> None:
    made, stream, bridge = make(pool=2, lifetime_ms=10)
    put_all(stream, range(4))
    stream.activate(1)
    put_all(stream, range(4, 6))
    made.flush()
    assert (bridge.items(0), bridge.items(1)) == ([0, 2, 4, 5], [1, 3])


def test_the_bridge_may_choose_among_the_active_replicas_of_a_balanced_stream() -> None:
    made, stream, bridge = make(pool=4, balanced=True)
    frames: list[bytes] = []
    made.frames.send = frames.append
    stream.activate(3)
    put_all(stream, range(4))
    for data, turn in zip(frames, (0, 1, 2, 0), strict=True):
        bridge.take(data)
        found = read_out(data)
        assert found is not None
        assert found[0] == turn, "whose turn it is, the envelope says"
    assert bridge.places == {BALANCED}
    assert [*bridge.envelopes] == [choice_of(0, 3)]


@given(st.integers(1, 4), st.lists(st.integers(1, 40), min_size=1, max_size=5), st.booleans(), st.booleans())
def test_what_waited_for_any_replica_leaves_in_its_order(
    active: int, counts: list[int], gathered: bool, at_once: bool
) -> None:
    """Whoever gets them: an envelope that was put before another has no item that came after one of that."""
    made, stream, bridge = make(pool=4, balanced=True, lifetime_ms=0 if gathered else 10)
    stream.activate(active)
    sent = 0
    for count in counts:
        if gathered:
            made.gather(crowded=True)
        items = list(range(sent, sent + count))
        stream.put_many(items) if at_once else put_all(stream, items)
        sent += count
        made.release() if gathered else made.flush()
    assert bridge.items(choice_of(0, active)) == list(range(sent))
    assert stream.shipped_envelopes == sum(min(active, count) for count in counts)


def test_a_balanced_stream_that_skips_a_layer_goes_in_turn() -> None:
    _, stream, bridge = make(pool=2, balanced=True, via=9)
    put_all(stream, range(2))
    assert (bridge.places, bridge.items(9)) == ({REMOTE}, [0, 1])


def test_at_least_one_replica_is_active() -> None:
    _, stream, bridge = make(pool=2)
    stream.activate(0)
    stream.put("x")
    assert bridge.items(0) == ["x"]


def test_lifetime_zero_ships_at_once() -> None:
    made, stream, bridge = make(pool=1)
    woken: list[int] = []
    made.wake_shipper = woken.append
    for count in range(1, 4):
        stream.put(count)
        assert len(bridge.envelopes[0]) == count
    assert [envelope.items for envelope in bridge.envelopes[0]] == [[1], [2], [3]]
    assert bridge.places == {REMOTE}
    assert not woken
    assert made.ship_due(FAR_NS) is None


def test_a_lifetime_is_kept_to_the_nanosecond(monkeypatch: pytest.MonkeyPatch) -> None:
    now_ns = 1_000
    monkeypatch.setattr(time, "monotonic_ns", lambda: now_ns)
    made, stream, bridge = make(pool=2, lifetime_ms=5)
    woken: list[int] = []
    made.wake_shipper = woken.append
    stream.put("first")
    now_ns += 2_000_000
    stream.put("second")
    assert woken == [5_001_000], "the deadline of the first item, once"
    assert made.ship_due(5_000_999) == 5_001_000
    assert not bridge.envelopes
    assert made.ship_due(5_001_000) is None
    assert (bridge.items(0), bridge.items(1)) == (["first"], ["second"])
    stream.put("third")
    assert woken == [5_001_000, 7_001_000], "the next envelope has a lifetime of its own"


def test_the_next_of_several_deadlines_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(time, "monotonic_ns", lambda: 0)
    made, slow, _ = make(pool=1, lifetime_ms=9)
    fast = OutStream(made, Stream("a->c", "a", "out", "c", batch_lifetime_ms=3), 5)
    fast.lay(StreamRoute(1, 1, 1, 0, False), 1)
    made.streams.append(fast)
    slow.put(1)
    fast.put(1)
    assert made.ship_due(0) == 3_000_000
    assert made.ship_due(3_000_000) == 9_000_000


@given(st.integers(1, 400), st.integers(200, 5000))
def test_the_byte_limit_closes_envelopes(size: int, limit: int) -> None:
    made, stream, bridge = make(pool=1, lifetime_ms=1e6, batch_bytes=limit, codec="bytes")
    put_all(stream, [bytes(size)] * 2000)
    made.flush()
    sizes = [len(envelope.items) * (size + 4) for envelope in bridge.envelopes[0]]
    assert sum(sizes) == 2000 * (size + 4)
    assert max(sizes[1:], default=0) <= max(limit, size + 4), "sizes are known from the first envelope on"
    assert stream.shipped_items == 2000


class Locked:
    """An item that cannot be pickled."""

    def __reduce__(self) -> Any:
        raise TypeError("cannot pickle a lock")


@given(st.lists(st.tuples(st.booleans(), st.booleans()), max_size=40), st.sampled_from([0.0, 5.0]))
def test_items_that_cannot_travel_are_parted_from_those_that_can(
    kinds: list[tuple[bool, bool]], lifetime_ms: float
) -> None:
    made, stream, bridge = make(pool=1, lifetime_ms=lifetime_ms, with_ids=True)
    refused: list[tuple[Any, str]] = []
    made.on_unshippable = lambda _, item, problem: refused.append((item, str(problem)))
    for number, (bad, tagged) in enumerate(kinds):
        made.begin_item((0, number), number + 1000 if tagged else None)
        stream.put(Locked() if bad else number)
    made.flush()
    good = [number for number, (bad, _) in enumerate(kinds) if not bad]
    assert bridge.items(0) == good, "in their order"
    assert [i[1] for i in bridge.ids()] == good
    tags = [
        (envelope.items[tag.item], tag.origin_ns) for envelope in bridge.envelopes[0] for tag in envelope.tags
    ]
    assert tags == [(n, n + 1000) for n, (bad, tagged) in enumerate(kinds) if tagged and not bad]
    assert [problem for _, problem in refused] == ["cannot pickle a lock"] * (len(kinds) - len(good))
    assert stream.shipped_items == len(good)


def test_many_large_items_travel_in_several_envelopes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(parts, "ITEM_LIMIT_BYTES", 1000)
    made, stream, bridge = make(pool=1, lifetime_ms=5)
    made.on_unshippable = lambda _, item, problem: pytest.fail(f"{problem} {item!r:.20}")
    items = [bytes([n]) * 400 for n in range(7)]
    put_all(stream, items)
    made.flush()
    assert bridge.items(0) == items
    assert len(bridge.envelopes[0]) > 1


def test_an_item_that_is_too_large_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(parts, "ITEM_LIMIT_BYTES", 1 << 20)
    _, stream, _ = make(pool=1)
    with pytest.raises(parts.Unshippable) as caught:
        stream.put(bytes(3 << 20))
    assert str(caught.value) == (
        "an item of 3 MiB is larger than the 1 MiB that stream a->b carries;"
        " send a reference to it, or parts of it"
    )


def test_marks_travel_with_acknowledgements() -> None:
    made, _, bridge = make()
    made.acknowledge()
    assert not bridge.acknowledged, "nothing new, nothing said"
    made.finished_input = 3
    made.acknowledge(b"here")
    made.acknowledge(b"here again")
    assert bridge.acknowledged == [3, 3]
    assert bridge.marks == [b"here", b"here again"]


class Acknowledging(RuleBasedStateMachine):
    """Whatever is put, shipped and asked, no frame acknowledges an input with an item still to be sent."""

    def __init__(self) -> None:
        super().__init__()
        self.outbox = Outbox(self.send, 0, with_ids=False)
        for number, lifetime_ms in enumerate((5.0, 7.0, 0.0)):
            name = f"a->{number}"
            stream = OutStream(
                self.outbox, Stream(name, "a", "out", str(number), batch_lifetime_ms=lifetime_ms), number
            )
            stream.lay(StreamRoute(1, 3 * number, 3, 0, False), 3)
            self.outbox.streams.append(stream)
        self.unsent: Counter[int] = Counter()
        self.running = False
        self.last = 0

    def send(self, data: bytes) -> None:
        kind = data[4]
        (done,) = struct.unpack_from("<q", data, 5)
        if kind == OUT:
            self.unsent -= Counter(item for item in decode(data[18:]).items if item)
        assert done >= self.last, "acknowledgements never go back"
        assert done <= self.outbox.finished_input
        assert not [i for i in self.unsent if i <= done], f"{done} is acknowledged"
        self.last = done

    @precondition(lambda self: not self.running)
    @rule()
    def begin(self) -> None:
        self.outbox.current_input += 1
        self.running = True

    @precondition(lambda self: self.running)
    @rule(stream=st.integers(0, 2), count=st.integers(1, 80))
    def put(self, stream: int, count: int) -> None:
        for _ in range(count):
            self.unsent[self.outbox.current_input] += 1
            self.outbox.streams[stream].put(self.outbox.current_input)

    @precondition(lambda self: not self.running)
    @rule(stream=st.integers(0, 2))
    def tick(self, stream: int) -> None:
        """A timer sends something that stems from no input."""
        self.outbox.streams[stream].put(0)

    @precondition(lambda self: self.running)
    @rule()
    def finish(self) -> None:
        self.outbox.finished_input = self.outbox.current_input
        self.running = False

    @rule(lifetime_ms=st.sampled_from([0, 5]), stream=st.integers(0, 2))
    def change_lifetime(self, lifetime_ms: int, stream: int) -> None:
        self.outbox.streams[stream].lifetime_ns = lifetime_ms * 1_000_000

    @rule(stream=st.integers(0, 2))
    def one_is_due(self, stream: int) -> None:
        self.outbox.streams[stream].deadline_ns = 0
        self.outbox.ship_due(1)

    @rule()
    def flush(self) -> None:
        self.outbox.flush()
        assert not self.unsent

    @rule()
    def acknowledge(self) -> None:
        self.outbox.acknowledge()

    @invariant()
    def the_last_word_is_known(self) -> None:
        assert self.outbox.acknowledged == self.last


TestAcknowledging = Acknowledging.TestCase


def in_a_thread(work: Callable[[], None]) -> threading.Thread:
    thread = threading.Thread(target=work)
    thread.start()
    return thread


@pytest.mark.parametrize("with_ids", [False, True])
@pytest.mark.parametrize("wiring", ["round_robin", "broadcast"])
def test_two_threads_lose_double_and_reorder_nothing(wiring: Wiring, with_ids: bool) -> None:
    """One puts, the other ships without a pause: the race that a worker and its shipper run all day."""
    made, stream, bridge = make(wiring, pool=3, lifetime_ms=0.001, with_ids=with_ids)
    over = threading.Event()

    def ship() -> None:
        while not over.is_set():
            made.ship_due(FAR_NS)

    shipper = in_a_thread(ship)
    count = 15_000
    for number in range(count):
        made.begin_item((0, number), number if number % 5 == 0 else None)
        made.current_input = number
        stream.put(number)
        made.finished_input = number
    over.set()
    shipper.join()
    made.flush()
    for replica in range(3):
        expected = list(range(replica, count, 3)) if wiring == "round_robin" else list(range(count))
        assert bridge.items(replica) == expected
        tagged = [
            (envelope.items[tag.item], tag.origin_ns)
            for envelope in bridge.envelopes[replica]
            for tag in envelope.tags
        ]
        assert tagged == [(number, number) for number in expected if number % 5 == 0]
        if with_ids:
            ids = [i for envelope in bridge.envelopes[replica] for i in envelope.ids or []]
            assert [i[1] for i in ids if i is not None] == expected
    assert bridge.acknowledged == sorted(bridge.acknowledged)


class Clock:
    """A clock for both threads of a worker; sending and coding take what a test says."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.now_ns = 1
        self.send_ns = 0
        monkeypatch.setattr(time, "monotonic_ns", lambda: self.now_ns)

    def outbox(self, lifetime_ms: float) -> tuple[Outbox, OutStream]:
        outbox, stream, _ = make(lifetime_ms=lifetime_ms, pool=1)
        outbox.frames.send = lambda _: self.passes(self.send_ns)
        return outbox, stream

    def passes(self, ns: int) -> None:
        self.now_ns += ns


class Slow:
    """An item that takes long to code."""

    def __init__(self, code: Callable[[], None]) -> None:
        self.code = code

    def __reduce__(self) -> tuple[Any, ...]:
        self.code()
        return (int, ())


@pytest.mark.parametrize(("send_ns", "useful_ns"), [(150_000, 7_150_000), (40_000_000, 7_000_000)])
def test_the_task_s_thread_codes_usefully_and_waits_for_room_not(
    monkeypatch: pytest.MonkeyPatch, send_ns: int, useful_ns: int
) -> None:
    clock = Clock(monkeypatch)
    outbox, stream = clock.outbox(lifetime_ms=0)
    clock.send_ns = send_ns
    before_ns = outbox.task_time.go(clock.now_ns)
    stream.put(Slow(lambda: clock.passes(7_000_000)))
    assert outbox.task_time.halt(clock.now_ns) - before_ns == useful_ns
    assert stream.coded_ns == 0


@pytest.mark.parametrize("send_ns", [0, 40_000_000])
def test_what_the_shipper_s_thread_codes_counts_for_its_stream(
    monkeypatch: pytest.MonkeyPatch, send_ns: int
) -> None:
    clock = Clock(monkeypatch)
    outbox, stream = clock.outbox(lifetime_ms=1)
    clock.send_ns = send_ns
    stream.put(Slow(lambda: clock.passes(7_000_000)))
    outbox.ship_due(FAR_NS)
    assert stream.coded_ns == 7_000_000
    assert outbox.task_time.at(clock.now_ns) == 0


def test_work_of_both_threads_at_the_same_time_counts_once(monkeypatch: pytest.MonkeyPatch) -> None:
    clock = Clock(monkeypatch)
    outbox, stream = clock.outbox(lifetime_ms=1)

    def code() -> None:
        clock.passes(4_000_000)
        outbox.task_time.go(clock.now_ns)  # the task's thread gets an envelope
        clock.passes(3_000_000)
        outbox.task_time.halt(clock.now_ns)
        clock.passes(2_000_000)

    stream.put(Slow(code))
    outbox.ship_due(FAR_NS)
    assert stream.coded_ns == 6_000_000
    assert outbox.task_time.at(clock.now_ns) == 3_000_000


def test_waiting_for_the_lock_is_not_useful() -> None:
    """The shipper's thread holds it while it waits for room; the task's waits with it, the other does not."""
    sending, room = threading.Event(), threading.Event()

    def send(_: bytes) -> None:
        sending.set()
        room.wait(20)

    outbox = Outbox(send, 0, with_ids=False)
    slow, fast = (
        OutStream(outbox, Stream("a->b", "a", "out", "b", batch_lifetime_ms=ms), 0) for ms in (1.0, 0.0)
    )
    for stream in (slow, fast):
        stream.lay(StreamRoute(1, 0, 1, 0, False), 1)
    outbox.streams = [slow, fast]
    slow.put("first")
    shipper = threading.Thread(target=outbox.ship_due, args=(FAR_NS,))
    shipper.start()
    assert sending.wait(20)
    threading.Timer(0.2, room.set).start()
    began_ns = time.monotonic_ns()
    before_ns = outbox.task_time.go(began_ns)
    fast.put("second")
    useful_ns = outbox.task_time.halt(time.monotonic_ns()) - before_ns
    took_ns = time.monotonic_ns() - began_ns
    shipper.join(20)
    assert took_ns > 150_000_000
    assert useful_ns < took_ns - 150_000_000
    assert slow.coded_ns < 150_000_000


@given(
    st.sampled_from(["round_robin", "broadcast", "forward"]),
    st.integers(1, 4),
    st.lists(st.integers(0, 200), max_size=4),
    st.sampled_from([0.0, 50.0]),
    st.sampled_from([1, 100, 65536]),
)
def test_many_items_at_once_go_where_they_go_one_by_one(
    wiring: Wiring, pool: int, counts: list[int], lifetime_ms: float, batch_bytes: int
) -> None:
    found = []
    for at_once in (False, True):
        outbox, stream, bridge = make(
            wiring, pool=pool, lifetime_ms=lifetime_ms, batch_bytes=batch_bytes, replica=pool - 1
        )
        first = 0
        for count in counts:
            items = list(range(first, first + count))
            first += count
            if at_once:
                stream.put_many(items)
            else:
                put_all(stream, items)
        outbox.flush()
        found.append({target: bridge.items(target) for target in range(pool)})
    assert found[0] == found[1]
