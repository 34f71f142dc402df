"""Frames between a bridge and a Python worker: u32 length, u8 kind, body; little endian.

`org.penstock.bridge.Wire` is the other side; a contract test compares the two.
"""

import select
import socket
from collections.abc import Iterator
from struct import Struct
from typing import NamedTuple

START = 1
DATA = 2
END = 3
MARK = 4
SWITCHES = 5
JOINED = 6
LINK = 7
GO = 8
WAIT = 9
BEHIND = 10
OUT = 16
ACK = 17
ENDED = 18
FAILED = 19
AT = 20
REPORT = 21
JOIN = 22
ALIVE = 23
MARKED = 24
FULL = 25

REMOTE = 255
"""The place of an envelope that leaves its unit."""
BALANCED = 254
"""The place of one whose receiver the bridge may choose, because it sees the queues."""

_LENGTH = Struct("<I")
_HEAD = Struct("<IB")
_DATA = Struct("<qqBIH")
_VERDICT = Struct("<II")
_OUT = Struct("<IBqiB")
_ACK = Struct("<IBq")
_AT = Struct("<IBqI")
_MARK = Struct("<qqBq")
_MARKED = Struct("<IBqq")
_TWO = Struct("<qq")
_EPOCH = Struct("<q")
_TAKEN = Struct("<q")
_PARTITION = Struct("<i")
_PARTITION_AT = 4  # in an envelope
_TIMEVAL = Struct("@ll")
_RECEIVE_BYTES = 1 << 16


class ChannelClosed(Exception):  # noqa: N818 - no error: how a worker learns that it may go
    """The bridge has gone."""


class Careful(NamedTuple):
    """An envelope that a dead worker left: items before `first` are done, others are condemned, and why."""

    first: int
    verdicts: dict[int, bytes]


class Mark(NamedTuple):
    """An epoch mark as a worker gets it: the last of its inputs before which all belongs to the epoch.

    For a source: whether it waits for the end of the epoch (`quiet`), and which one was committed last.
    `switches`, as JSON, are there if keys change hands with this mark.
    """

    sequence: int
    epoch: int
    quiet: bool
    committed: int
    switches: bytes = b""


class Inbox:
    """Whole frames from a socket, read in large pieces."""

    def __init__(self, connection: socket.socket) -> None:
        self._socket = connection
        self._buffer = bytearray()
        self._start = 0
        self._patience_s: float | None = None

    def fileno(self) -> int:
        """For select."""
        return self._socket.fileno()

    @property
    def waiting_bytes(self) -> int:
        """How much has arrived and was not looked at."""
        return len(self._buffer) - self._start

    def frames(self) -> Iterator[tuple[int, memoryview]]:
        """The frames that have arrived whole. Whoever keeps a body keeps the bytes it was received with."""
        while True:
            buffer, start = self._buffer, self._start
            if len(buffer) - start < 4:
                return
            (length,) = _LENGTH.unpack_from(buffer, start)
            end = start + 4 + length
            if len(buffer) < end:
                return
            self._start = end
            yield buffer[start + 4], memoryview(buffer)[start + 5 : end]

    def wait(self, timeout_s: float | None) -> bool:
        """Wait for more bytes and take them in; False when none came in time."""
        if timeout_s is not None and not select.select([self._socket], [], [], timeout_s)[0]:
            return False
        return self.wait_about(None)

    def wait_about(self, timeout_s: float | None) -> bool:
        """The same, as exact as the kernel's ticks, with one system call instead of two."""
        if timeout_s != self._patience_s:
            self._socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVTIMEO, _timeval(timeout_s))
            self._patience_s = timeout_s
        try:
            received = self._socket.recv(_RECEIVE_BYTES)
        except BlockingIOError:
            return False
        except ConnectionResetError:  # closed with something of ours unread
            raise ChannelClosed from None
        if not received:
            raise ChannelClosed
        if self._start:
            # A new object, because views of the old one may still be alive in the caller's frame.
            self._buffer = self._buffer[self._start :]
            self._start = 0
        self._buffer += received
        return True


def _timeval(timeout_s: float | None) -> bytes:
    """The struct that the kernel takes for a timeout; zero means none."""
    seconds, fraction = divmod(timeout_s or 0.0, 1.0)
    return _TIMEVAL.pack(int(seconds), int(fraction * 1e6))


def frame(kind: int, body: bytes = b"") -> bytes:
    """Any frame."""
    return _HEAD.pack(1 + len(body), kind) + body


def out_frame(acknowledged: int, target: int, place: int, envelope: bytes) -> bytes:
    """An envelope for a partition of the next layer, or for a place of the same unit."""
    return _OUT.pack(14 + len(envelope), OUT, acknowledged, target, place) + envelope


def choice_of(first: int, count: int) -> int:
    """The target of an envelope at the place BALANCED: one of `count` partitions from the first on."""
    return first | count << 16


def read_out(data: bytes) -> tuple[int, memoryview] | None:
    """The partition and the envelope of an OUT frame, as the bridge reads it; None if it is another frame.

    Of a balanced stream it is the partition whose turn it is.
    """
    if data[_LENGTH.size] != OUT:
        return None
    _, _, _, target, place = _OUT.unpack_from(data)
    envelope = memoryview(data)[_OUT.size :]
    if place == BALANCED:
        first, count = target & 0xFFFF, max(1, target >> 16)
        target = first + (_PARTITION.unpack_from(envelope, _PARTITION_AT)[0] - first) % count
    return target, envelope


def ack_frame(acknowledged: int, mark: bytes = b"") -> bytes:
    """Everything up to this input is processed and its output shipped; a source adds its mark."""
    return _ACK.pack(9 + len(mark), ACK, acknowledged) + mark


def at_frame(sequence: int, item: int) -> bytes:
    """About to touch this item."""
    return _AT.pack(13, AT, sequence, item)


def mark_frame(mark: Mark) -> bytes:
    """As the bridge writes it."""
    return frame(MARK, _MARK.pack(*mark[:4]) + mark.switches)


def read_mark(body: bytes | memoryview) -> Mark:
    """Of a MARK frame."""
    sequence, epoch, quiet, committed = _MARK.unpack_from(body)
    return Mark(sequence, epoch, bool(quiet), committed, bytes(body[_MARK.size :]))


def read_epoch(body: bytes | memoryview) -> int:
    """The epoch of a GO frame, which is over, or of a WAIT frame, whose end is to be waited for."""
    return int(_EPOCH.unpack(body)[0])


def full_frame(epoch: int) -> bytes:
    """Too much waits for state that comes when this epoch is over."""
    return frame(FULL, _EPOCH.pack(epoch))


def marked_frame(acknowledged: int, epoch: int, said: bytes) -> bytes:
    """The answer to a mark: all before it is shipped and written down; what is to be said of it, as JSON."""
    return _MARKED.pack(17 + len(said), MARKED, acknowledged, epoch) + said


def read_marked(body: bytes | memoryview) -> tuple[int, int, bytes]:
    """Acknowledged, epoch and JSON of a MARKED frame, as the bridge reads it."""
    acknowledged, epoch = _TWO.unpack_from(body)
    return acknowledged, epoch, bytes(body[_TWO.size :])


def report_frame(taken: int, report: bytes) -> bytes:
    """A report, as JSON, and the input that was taken last: what waits behind it the bridge knows."""
    return frame(REPORT, _TAKEN.pack(taken) + report)


def read_report(body: bytes | memoryview) -> tuple[int, bytes]:
    """The input that was taken last, and the report."""
    return _TAKEN.unpack_from(body)[0], bytes(body[_TAKEN.size :])


def read_data(body: memoryview) -> tuple[int, int, Careful | None, memoryview]:
    """Sequence, arrival (monotonic ns), how to be careful, envelope of a DATA frame."""
    sequence, arrived_ns, careful, first, verdicts = _DATA.unpack_from(body)
    if not careful:
        return sequence, arrived_ns, None, body[_DATA.size :]
    at, found = _DATA.size, {}
    for _ in range(verdicts):
        item, length = _VERDICT.unpack_from(body, at)
        at += _VERDICT.size + length
        found[item] = bytes(body[at - length : at])
    return sequence, arrived_ns, Careful(first, found), body[at:]
