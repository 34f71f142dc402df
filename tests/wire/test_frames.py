"""Frames: whole, in order, however the bytes are cut up on their way."""

import socket
import struct
from collections.abc import Iterator

import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.wire import frames as wire

frames = st.lists(st.tuples(st.integers(0, 255), st.binary(max_size=300)), max_size=20)


@pytest.fixture
def pair() -> Iterator[tuple[socket.socket, socket.socket]]:
    ours, theirs = socket.socketpair()
    with ours, theirs:
        yield ours, theirs


@given(frames, st.lists(st.integers(1, 400), min_size=1, max_size=10))
def test_frames_survive_any_cutting(sent: list[tuple[int, bytes]], cuts: list[int]) -> None:
    ours, theirs = socket.socketpair()
    with ours, theirs:
        inbox = wire.Inbox(ours)
        data = b"".join(wire.frame(kind, body) for kind, body in sent)
        received, at, turn = [], 0, 0
        while at < len(data):
            size = cuts[turn % len(cuts)]
            theirs.sendall(data[at : at + size])
            at, turn = at + size, turn + 1
            assert inbox.wait(0)
            received += [(kind, bytes(body)) for kind, body in inbox.frames()]
        assert received == sent


@given(frames.filter(bool), st.integers(0, 19))
def test_whoever_stops_reading_goes_on_with_the_next_frame(sent: list[tuple[int, bytes]], stop: int) -> None:
    ours, theirs = socket.socketpair()
    with ours, theirs:
        inbox = wire.Inbox(ours)
        theirs.sendall(b"".join(wire.frame(kind, body) for kind, body in sent))
        inbox.wait(1)
        received = []
        for number, (kind, body) in enumerate(inbox.frames()):
            received.append((kind, bytes(body)))
            if number == stop:
                break
        received += [(kind, bytes(body)) for kind, body in inbox.frames()]
        assert received == sent


def test_a_frame_larger_than_one_receive(pair: tuple[socket.socket, socket.socket]) -> None:
    ours, theirs = pair
    inbox = wire.Inbox(ours)
    body = bytes(range(256)) * 500
    data = wire.frame(wire.DATA, body)
    for start in range(0, len(data), 50_000):
        theirs.sendall(data[start : start + 50_000])
        assert inbox.wait(1)
    while not (received := [(kind, bytes(body)) for kind, body in inbox.frames()]):
        inbox.wait(1)
    assert received == [(wire.DATA, body)]


def test_waiting_is_bounded_and_a_closed_channel_says_so(pair: tuple[socket.socket, socket.socket]) -> None:
    ours, theirs = pair
    inbox = wire.Inbox(ours)
    assert inbox.fileno() == ours.fileno()
    assert not inbox.wait(0)
    assert not inbox.wait_about(0.01)
    assert list(inbox.frames()) == []
    theirs.sendall(wire.frame(wire.END))
    assert inbox.wait_about(None)
    assert [kind for kind, _ in inbox.frames()] == [wire.END]
    ours.sendall(b"never read")
    theirs.close()
    for _ in ("reset", "closed"):
        with pytest.raises(wire.ChannelClosed):
            inbox.wait(None)


@given(
    st.integers(0, 2**62),
    st.integers(0, 2**62),
    st.none()
    | st.builds(
        wire.Careful,
        st.integers(0, 2**32 - 1),
        st.dictionaries(st.integers(0, 2**32 - 1), st.binary(), max_size=5),
    ),
    st.binary(),
)
def test_data_is_read_as_the_bridge_writes_it(
    sequence: int, arrived_ns: int, careful: wire.Careful | None, envelope: bytes
) -> None:
    first, verdicts = careful or (0, {})
    body = struct.pack("<qqBIH", sequence, arrived_ns, careful is not None, first, len(verdicts))
    body += b"".join(struct.pack("<II", item, len(text)) + text for item, text in verdicts.items())
    *head, rest = wire.read_data(memoryview(body + envelope))
    assert head == [sequence, arrived_ns, careful]
    assert bytes(rest) == envelope


@given(st.integers(0, 2**62), st.integers(0, 2**31 - 1), st.integers(0, 255), st.binary())
def test_lengths_of_all_frames_are_right(number: int, target: int, place: int, rest: bytes) -> None:
    made = {
        wire.frame(wire.END, rest): (wire.END, rest),
        wire.out_frame(number, target, place, rest): (
            wire.OUT,
            struct.pack("<qiB", number, target, place) + rest,
        ),
        wire.ack_frame(number, rest): (wire.ACK, struct.pack("<q", number) + rest),
        wire.at_frame(number, target): (wire.AT, struct.pack("<qI", number, target)),
    }
    for data, (kind, body) in made.items():
        assert data == struct.pack("<IB", 1 + len(body), kind) + body


def test_an_envelope_that_was_sent_is_read_with_its_partition() -> None:
    found = wire.read_out(wire.out_frame(7, 3, wire.REMOTE, b"envelope"))
    assert found is not None
    assert (found[0], bytes(found[1])) == (3, b"envelope")
    assert wire.read_out(wire.ack_frame(7, b"mark")) is None
