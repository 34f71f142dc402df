"""Connections between executors: both ends inside one process here, and whoever does not belong."""

import socket
import struct
import threading
import time
from collections.abc import Iterator
from typing import Any

import pytest
from py4j.protocol import Py4JJavaError

from tests.spark.between import between
from tests.spark.ends import GREETING, HOST, ROOM, Channel, Ends, in_every_way, java, one_way, wait_for, waits

OPEN, CREDIT, ROW, MORE, ASK, END, WATCH = 1, 2, 11, 12, 13, 14, 16


@pytest.fixture(scope="module")
def jvm() -> Iterator[Any]:
    with java() as started:
        yield started


@pytest.fixture
def ends(jvm: Any) -> Iterator[Ends]:
    made = Ends(jvm, {})
    yield made
    made.close()


@in_every_way
def test_rows_come_in_their_order_and_the_connection_stays(jvm: Any, settings: dict[str, str]) -> None:
    ends = Ends(jvm, settings)
    for shuffle in (1, 2):
        channel = Channel(ends, shuffle)
        for number in range(20):
            channel.put(number)
        channel.sink.end()
        channel.sink.awaitEnded(channel.watch)
        assert [channel.take() for _ in range(20)] == list(range(20))
        assert channel.inbox.isOver()
        ends.writing.unregister(shuffle, 7)
    assert (ends.writing.open(), ends.reading.open()) == (1, 1)
    assert ends.writing.writing() == 0
    ends.writing.to("2", HOST, ends.reading.port())
    assert (ends.writing.open(), ends.reading.open()) == (1, 1), "the other side uses the same one"
    ends.close()


def test_a_writer_has_its_room_and_waits_for_more(ends: Ends) -> None:
    channel = Channel(ends)
    for number in range(2):
        channel.put(number, 400)
    waiting = waits(lambda: channel.put(2, 400))
    assert waiting(), "2 x 400 of 1,000 bytes are taken"
    assert channel.take() == 0
    assert waiting(), "room comes back when more than half of it is free"
    assert channel.take() == 1
    wait_for(lambda: not waiting())
    assert channel.take() == 2


def test_a_full_channel_does_not_stop_its_writer_at_once(ends: Ends) -> None:
    """Its rows wait beyond its room: half of what may wait is left for others, as inside an executor."""
    memory = ends.jvm.org.penstock.bridge.ShuffleMemory(1 << 30)
    outlets = ends.writing.register(1, 7, 2, ends.jvm.org.penstock.bridge.Sender(memory.share(), 4000))
    slow, quick = (Channel(ends, outlets=outlets, reader=reader) for reader in range(2))
    held_bytes = ends.jvm.org.apache.spark.penstock.Handovers.heldBytes
    before = held_bytes()
    for number in range(7):
        slow.put(number, 400)
    assert memory.heldBytes() == 5 * 400, "two are in its room"
    assert held_bytes() == before + 5 * 400, "which is shown"
    assert slow.sink.load() == 7 * 400
    for number in range(10):
        quick.put(number, 400)
        assert quick.take() == number
    waiting = waits(lambda: slow.put(7, 400))
    assert waiting(), "it may not have more waiting"
    assert [slow.take() for _ in range(8)] == list(range(8))
    wait_for(lambda: not waiting())
    assert memory.heldBytes() == 0
    assert held_bytes() == before


def test_what_waits_comes_before_the_end_whatever_its_size(ends: Ends) -> None:
    """Rows of more than half of the room are asked for when it is their turn."""
    outlets = ends.writing.register(1, 7, 1, ends.sender(1 << 20))
    channel = Channel(ends, outlets=outlets)
    sizes = [400, 400, 400, 800, 16, 5000, 16, 600, 400]
    for number, size in enumerate(sizes):
        channel.put(number, size)
    channel.sink.end()
    ended = waits(lambda: channel.sink.awaitEnded(channel.watch))
    for number in range(len(sizes)):
        assert not channel.inbox.isOver()
        assert channel.take() == number
    wait_for(lambda: not ended())
    assert channel.inbox.isOver()
    assert ends.reading.largeRows().usedBytes() == 0


def test_what_waits_is_shared_with_channels_inside_of_the_executor(ends: Ends) -> None:
    sender = ends.sender(4000)
    channel = Channel(ends, outlets=ends.writing.register(1, 7, 1, sender))
    inside = ends.inbox(1).channel(sender)
    for number in range(7):
        assert inside.put(f"row {number}", 400, 0)
    for number in range(5):
        channel.put(number, 400)
    waiting = waits(lambda: channel.put(5, 400))
    assert waiting(), "beside 1,800 that wait inside it may have 1,200: half of what is left"
    assert [channel.take() for _ in range(6)] == list(range(6))
    wait_for(lambda: not waiting())


def test_what_waits_is_forgotten_when_its_writer_ends_early(ends: Ends) -> None:
    """Its reader hears that it failed, and of no end."""
    memory = ends.jvm.org.penstock.bridge.ShuffleMemory(1 << 30)
    outlets = ends.writing.register(1, 7, 1, ends.jvm.org.penstock.bridge.Sender(memory.share(), 4000))
    channel = Channel(ends, outlets=outlets)
    held_bytes = ends.jvm.org.apache.spark.penstock.Handovers.heldBytes
    before = held_bytes()
    for number in range(4):
        channel.put(number, 400)
    channel.sink.end()
    channel.outlet.close()
    assert memory.heldBytes() == 0
    assert held_bytes() == before
    wait_for(channel.watch.hasFailed)
    assert [channel.take() for _ in range(2)] == [0, 1]
    assert channel.inbox.take(100) is None
    assert not channel.inbox.isOver()


@in_every_way
def test_small_rows_pass_a_large_one_on_its_way(jvm: Any, settings: dict[str, str]) -> None:
    """They share a connection that takes nothing for a while."""
    ends = Ends(jvm, settings)
    size, passed, open_again = 32 << 20, 0, threading.Semaphore(0)

    def held(data: bytes) -> bytes:
        nonlocal passed
        passed += len(data)
        if passed > 1 << 20:
            open_again.acquire()
        return data

    with between(ends.writing.port()) as proxy:
        large, small = Channel(ends, port=proxy.port), Channel(ends, map_id=8)
        row = jvm.org.apache.spark.sql.catalyst.expressions.UnsafeRow.createFromByteArray(size, 1)
        proxy.from_called.change = held
        sending = waits(lambda: large.sink.put(0, row, large.watch))
        wait_for(lambda: passed > 1 << 20)
        assert sending(), "the way is too narrow for it"
        waits(lambda: small.put(5))()
        while small.inbox.bytes() == 0:
            open_again.release()
            time.sleep(0.001)
        assert large.inbox.bytes() == 0, "it is not there yet"
        open_again.release(size)
        assert small.take() == 5
        wait_for(lambda: large.inbox.bytes() == size)
        assert not sending()
    ends.close()


def test_large_rows_are_asked_for_and_take_turns(ends: Ends) -> None:
    """10,000 bytes for all of them; one that is larger than that gets through alone, in parts."""
    first, second = Channel(ends), Channel(ends, map_id=8)
    large = ends.reading.largeRows()
    first.put(1, 8000)
    wait_for(lambda: large.usedBytes() == 8000)
    other = waits(lambda: second.put(2, 400_000))
    wait_for(lambda: large.waiting() == 1)
    assert other()
    assert first.take() == 1
    wait_for(lambda: not other())
    assert large.usedBytes() == 400_000
    assert second.take() == 2
    assert large.usedBytes() == 0
    first.put(3, 8000)
    first.incoming.close()
    wait_for(lambda: large.usedBytes() == 0)


def test_whoever_ends_early_is_noticed(ends: Ends) -> None:
    channel = Channel(ends)
    channel.put(1)
    channel.outlet.close()
    wait_for(channel.watch.hasFailed)
    late = ends.watch()
    link = ends.reading.to("1", HOST, ends.writing.port())
    ends.writing.unregister(1, 7)
    link.open(1, 7, 0, ends.channel(channel.inbox), ROOM, late)
    wait_for(late.hasFailed)
    other = Channel(ends, 2)
    ends.writing.close()
    wait_for(other.watch.hasFailed)


def test_who_does_not_know_the_secret_is_not_heard(ends: Ends) -> None:
    channel = Channel(ends)
    before = ends.refused()
    with pytest.raises(Py4JJavaError), ends.stranger("guessed"):
        pass
    wait_for(lambda: ends.refused() == before + 1)
    with pytest.raises(Py4JJavaError):
        ends.links("3", "guessed").to("2", HOST, ends.reading.port())
    wait_for(lambda: ends.refused() == before + 2)
    channel.put(5)
    assert channel.take() == 5


@pytest.mark.parametrize(
    "said",
    [
        b"GET / HTTP/1.1\r\n\r\n",
        bytes(64),
        struct.pack(">qb", 9 + 8, 77) + bytes(8),
        one_way(struct.pack(">biqi", ROW, 1, 0, 1)),
        struct.pack(">qb", 9 + 8 + 4 + 3, 3) + struct.pack(">qi", 5, 3) + b"abc",
        struct.pack(">qb", 9 + 12, 0) + struct.pack(">qi", 5, 3),
        struct.pack(">qb", 1 << 30, 9) + bytes(1 << 17),
    ],
    ids=["http", "zeros", "unknown", "row", "no proof", "chunk", "much"],
)
def test_what_comes_without_proof_closes_the_connection(ends: Ends, said: bytes) -> None:
    channel = Channel(ends)
    before = ends.refused()
    with socket.create_connection((HOST, ends.reading.port()), timeout=5) as caller:
        try:
            caller.sendall(said)
            while caller.recv(1024):
                pass
        except ConnectionError:
            pass
    wait_for(lambda: ends.refused() == before + 1)
    channel.put(6)
    assert channel.take() == 6


@pytest.mark.parametrize(
    "said",
    [
        [b""],
        [b"\x01"],
        [struct.pack(">bi", 99, 1)],
        [struct.pack(">biqi", ROW, 1, 0, 1)],
        [struct.pack(">bii", CREDIT, 1, 8)],
        [struct.pack(">biiqii", OPEN, 1, 1, 7, 0, ROOM)] * 2,
        [struct.pack(">biiqii", OPEN, 2, 1, 7, 0, ROOM)],
        [struct.pack(">biiqii", OPEN, 1, 1, 7, 0, ROOM) + b"more"],
    ],
    ids=["nothing", "cut", "unknown", "row", "credit", "replayed", "skipped", "long"],
)
def test_wrong_messages_of_who_knows_the_secret_close_its_connection_only(
    ends: Ends, said: list[bytes]
) -> None:
    channel = Channel(ends)
    before = ends.refused()
    buffer = ends.jvm.java.nio.ByteBuffer
    with ends.stranger() as client:
        answer = client.sendRpcSync(buffer.wrap(GREETING + b"9"), 5000)
        assert answer.get() == 1
        assert client.isActive()
        for message in said:
            client.send(buffer.wrap(message))
        wait_for(lambda: not client.isActive())
    assert ends.refused() == before + 1
    channel.put(7)
    assert channel.take() == 7


@pytest.mark.parametrize(
    "said",
    [
        [struct.pack(">biqii", ROW, 2, 0, 1, 16) + bytes(16)] * 2,
        [struct.pack(">biqii", ROW, 2, 1, 1, 16) + bytes(16)],
        [struct.pack(">biqii", ROW, 2, 0, 1, 1 << 30) + bytes(16)],
        [struct.pack(">biqii", ROW, 2, 0, 1 << 20, 16) + bytes(16)],
        [struct.pack(">biqii", ROW, 2, 0, 1, 16) + bytes(24)],
        [struct.pack(">biq", MORE, 2, 0) + bytes(16)],
        [struct.pack(">bii", ASK, 2, 16)],
        [struct.pack(">bi", WATCH, 2)] * 2,
        [struct.pack(">biqii", ROW, 2, 0, 1, 32) + bytes(16), struct.pack(">biq", END, 2, 1)],
    ],
    ids=["replayed", "skipped", "no room", "fields", "too much", "more", "asked", "watched", "end"],
)
def test_a_writer_that_breaks_the_rules_fails_its_readers_and_nobody_else(
    ends: Ends, said: list[bytes]
) -> None:
    """The reader called somebody who knows the secret, and sends it what no writer sends."""
    channel = Channel(ends)
    before = ends.refused()
    buffer = ends.jvm.java.nio.ByteBuffer
    with ends.stranger() as client:
        assert client.sendRpcSync(buffer.wrap(GREETING + b"9"), 5000).get() == 1
        watch = ends.watch()
        link = ends.reading.to("9", HOST, 1)
        link.open(1, 8, 0, ends.channel(ends.inbox(1)), ROOM, watch)
        for message in said:
            client.send(buffer.wrap(message))
        wait_for(watch.hasFailed)
        wait_for(lambda: not client.isActive())
    assert ends.refused() == before + 1
    channel.put(8)
    assert channel.take() == 8
    assert not channel.watch.hasFailed()


def test_two_that_call_each_other_at_once_have_one_connection(ends: Ends) -> None:
    for turn in range(5):
        one, other = ends.links(f"a{turn}", "s3cret"), ends.links(f"b{turn}", "s3cret")
        back = waits(lambda one=one, other=other, turn=turn: one.to(f"b{turn}", HOST, other.port()))  # type: ignore[misc]
        other.to(f"a{turn}", HOST, one.port())
        wait_for(lambda back=back: not back())  # type: ignore[misc]
        time.sleep(0.05)
        assert (one.open(), other.open()) == (1, 1)
        one.close()
        other.close()


def test_readers_that_start_at_once_open_their_channels_in_order(ends: Ends) -> None:
    before = ends.refused()
    link = ends.reading.to("1", HOST, ends.writing.port())
    inbox = ends.inbox(1)
    watches = [ends.watch() for _ in range(8)]

    def several(watch: Any) -> None:
        for _ in range(40):
            link.open(1, 7, 0, ends.channel(inbox), ROOM, watch)

    opening = [threading.Thread(target=several, args=(watch,)) for watch in watches]
    for thread in opening:
        thread.start()
    for thread in opening:
        thread.join()
    wait_for(lambda: all(watch.hasFailed() for watch in watches))  # there is no such writer
    assert ends.refused() == before
    assert ends.reading.open() == 1


def test_room_that_is_given_back_while_more_is_asked_for_is_counted_once(ends: Ends) -> None:
    """Bytes are given back by the reading task, grants come from the connection's thread: in that order."""
    channel = Channel(ends)
    rounds, refused = 400, ends.refused()

    def write() -> None:
        for number in range(0, 3 * rounds, 3):
            channel.put(number, 256)
            channel.put(number + 1, 256)
            channel.put(number + 2, 800)

    writer = threading.Thread(target=write, daemon=True)
    writer.start()
    for number in range(3 * rounds):
        assert channel.take() == number
    writer.join(20)
    assert ends.refused() == refused


def test_rows_before_a_task_leave_room_for_what_it_makes_of_them(ends: Ends) -> None:
    """All room is taken by rows of one shuffle, whose readers wait until they have sent on over another."""
    large = ends.reading.largeRows()
    before, beside, behind = Channel(ends, 1), Channel(ends, 1, map_id=8), Channel(ends, 2)
    before.put(1, 10_000)
    waiting = waits(lambda: beside.put(2, 8000))
    wait_for(lambda: large.waiting() == 1)
    behind.put(3, 8000)
    assert behind.take() == 3
    assert waiting(), "more of the same shuffle waits for its turn"
    assert before.take() == 1
    wait_for(lambda: not waiting())
    assert beside.take() == 2
    assert (large.usedBytes(), large.waiting()) == (0, 0)


def test_nothing_of_tasks_that_are_over_stays_on_a_connection(ends: Ends) -> None:
    """Whichever side ends first, and whether it ended well."""
    well, writer_first, reader_first = Channel(ends, 1), Channel(ends, 2), Channel(ends, 3)
    back = ends.writing.to("2", HOST, ends.reading.port())
    assert (well.link.channels(), back.channels()) == (3, 3)
    well.sink.end()
    well.sink.awaitEnded(well.watch)
    writer_first.outlet.close()
    wait_for(writer_first.watch.hasFailed)
    reader_first.incoming.close()
    wait_for(reader_first.hears_of_failure)
    for channel in (well, writer_first, reader_first):
        channel.incoming.close()
        channel.outlet.close()
    assert (well.link.channels(), back.channels()) == (0, 0)


def test_one_that_cannot_listen_says_so_and_leaves_no_threads(ends: Ends) -> None:
    def threads() -> int:
        return int(ends.jvm.java.lang.Thread.getAllStackTraces().size())

    channel = Channel(ends)
    before = threads()
    for _ in range(5):
        with pytest.raises(Py4JJavaError, match=r"IllegalStateException.*Cannot assign requested address"):
            ends.links("3", "s3cret", at="192.0.2.1")
    wait_for(lambda: threads() <= before + 2)
    channel.put(9)
    assert channel.take() == 9


def cannot_be_reached(links: Any, port: int) -> None:
    with pytest.raises(Py4JJavaError, match="cannot be reached"):
        links.to("1", HOST, port)


def test_a_caller_that_fails_does_not_fail_those_who_wait_for_it(ends: Ends) -> None:
    """Its task may have been ended meanwhile: they call themselves."""
    with socket.create_server((HOST, 0)) as silent:
        port = silent.getsockname()[1]
        failing = waits(lambda: cannot_be_reached(ends.reading, port))
        caller, _ = silent.accept()
        found: list[Any] = []
        other = waits(lambda: found.append(ends.reading.to("1", HOST, ends.writing.port())))
        assert failing()
        assert other(), "one calls for both"
        caller.close()
    wait_for(lambda: not failing() and not other())
    assert [link.channels() for link in found] == [0]
    assert ends.reading.open() == 1


def test_a_writer_knows_what_is_before_a_reader_in_another_executor(ends: Ends) -> None:
    """Its own rows at once, those of others soon, and what was taken before room is given back."""
    one = Channel(ends, inbox=ends.inbox(2))
    other = Channel(ends, map_id=8, inbox=one.inbox)
    assert (one.sink.load(), other.sink.load()) == (0, 0)
    one.put(1, 64)
    assert one.sink.load() == 64
    wait_for(lambda: other.sink.load() == 64)
    other.put(2, 128)
    assert other.sink.load() == 192
    wait_for(lambda: one.sink.load() == 192)
    assert one.take() == 1
    wait_for(lambda: (one.sink.load(), other.sink.load()) == (128, 128))


def test_memory_of_a_shuffle_that_is_over_is_not_taken_any_more(ends: Ends) -> None:
    """A writer in the executor of a reader that has failed may put one more row."""
    bridge = ends.jvm.org.penstock.bridge
    memory = bridge.ShuffleMemory(10_000)
    share = memory.share()
    channel = ends.inbox(1).channel(bridge.Sender(share, 0))
    share.close()
    assert not channel.put("nobody reads it", 5 * ROOM, 0)
    assert memory.heldBytes() == 0
