"""A worker process without Spark: forked as the zygote does, with a bridge that is this test."""

import contextlib
import fcntl
import os
import select
import signal
import socket
import struct
import termios
import time
from array import array
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import msgspec

from penstock.epochs.boundary import Place
from penstock.epochs.reports import Marked
from penstock.flow import Flow
from penstock.flow.layers import lay_out
from penstock.flow.record import Metadata
from penstock.stats.clock_offset import Exchange
from penstock.wire import frames as wire
from penstock.wire.codecs import coder_of
from penstock.wire.envelope import Address, Envelope, Tag, decode, encode
from penstock.wire.ids import ItemId
from penstock.wire.orders import Link, Plan, SourceOrder, StartOrder, Switches, Verdict
from penstock.wire.routes import routes
from penstock.worker import worker
from penstock.worker.gauge import Gauge

PATIENCE_S = 20.0


class LoneWorker:
    """The bridge's side of one worker process."""

    def __init__(self, flow: Flow, pid: int, data: socket.socket, control: socket.socket) -> None:
        self.graph = flow.graph()
        self.pid = pid
        self._coders = [coder_of(stream.codec, stream.name) for stream in self.graph.streams]
        self.switches = Switches(
            routes=routes(lay_out(self.graph)),
            active={task.name: task.parallelism.pool for task in self.graph.tasks},
            lifetime_ms={stream.name: stream.batch_lifetime_ms for stream in self.graph.streams},
            sampling=0.0,
        )
        # The driver's clock is this machine's, unless a test says otherwise.
        self.exchange: Exchange | None = Exchange(0, 0, 0, 0)
        self.lease_until_ns: int | None = None
        self.batch = 0
        self.acknowledged = 0
        self.marks: list[bytes] = []
        self.at: list[tuple[int, int]] = []
        self.out: list[tuple[int, int, Envelope]] = []
        self.reports: list[dict[str, Any]] = []
        self.taken: list[int] = []
        self.marked: list[tuple[int, int, Marked]] = []
        """Of epochs: acknowledged, number, what was said."""
        self._held: bytes | None = None
        self._data, self._control = data, control
        self._inboxes = {data: wire.Inbox(data), control: wire.Inbox(control)}

    def start(
        self,
        task: str,
        replica: int = 0,
        source: SourceOrder | None = None,
        *,
        batch: int | None = None,
        epoch: int = 0,
    ) -> None:
        """A START frame; batches are numbered from 1 unless a test says otherwise."""
        self.batch = self.batch + 1 if batch is None else batch
        order = StartOrder(
            task, replica, self.batch, self.switches, source, Link(self.exchange, self.lease_until_ns), epoch
        )
        self.send(wire.frame(wire.START, msgspec.json.encode(order)))

    def give(
        self,
        sequence: int,
        items: list[Any],
        *,
        stream: int = 0,
        tags: Iterable[Tag] = (),
        ids: list[ItemId | None] | None = None,
        metadata: list[Metadata | None] | None = None,
        careful: bool = False,
        first: int = 0,
        verdicts: Mapping[int, Verdict] | None = None,
        ship_ns: int | None = None,
    ) -> None:
        """A DATA frame."""
        told = [(item, msgspec.json.encode(verdict)) for item, verdict in (verdicts or {}).items()]
        coder = self._coders[stream]
        body = coder.dump(items)
        shipped_ns = time.monotonic_ns() if ship_ns is None else ship_ns
        sender = (Address(1, 0, 0), stream, 0, shipped_ns)
        envelope = encode(*sender, body, len(items), coder.number, [*tags], ids, metadata)
        head = struct.pack("<qqBIH", sequence, time.monotonic_ns(), careful, first, len(told))
        judged = b"".join(struct.pack("<II", item, len(json)) + json for item, json in told)
        self.send(wire.frame(wire.DATA, head + judged + envelope))

    def mark(
        self,
        epoch: int,
        sequence: int = 0,
        *,
        quiet: bool = False,
        committed: int = 0,
        switches: Switches | None = None,
    ) -> None:
        """A MARK frame."""
        json = b"" if switches is None else msgspec.json.encode(switches)
        self.send(wire.mark_frame(wire.Mark(sequence, epoch, quiet, committed, json)))

    def end(self, *, last: bool = False) -> dict[str, Any]:
        """An END frame; the final report."""
        self.send(wire.frame(wire.END, bytes([last])))
        return self.until(wire.ENDED)

    def send(self, data: bytes) -> None:
        if self._held is None:
            self._data.sendall(data)
        else:
            self._held += data

    @contextmanager
    def together(self) -> Iterator[None]:
        """What is sent here arrives at once."""
        self._held = b""
        yield
        held, self._held = self._held, None
        self._data.sendall(held)

    def change(self, **changes: Any) -> None:
        """The next order of the driver, on the control channel."""
        newer = {"version": self.switches.version + 1, **changes}
        self.switches = msgspec.structs.replace(self.switches, **newer)
        self.order(self.switches)

    def order(self, switches: Switches) -> None:
        """Any order, on the control channel."""
        self.tell(wire.frame(wire.SWITCHES, msgspec.json.encode(switches)))

    def tell(self, data: bytes) -> None:
        """A frame on the control channel."""
        self._control.sendall(data)

    def items(self) -> list[Any]:
        return [item for _, _, envelope in self.out for item in envelope.items]

    def until_items(self, count: int) -> None:
        """Take in frames until so many items have come in all."""
        come, known = 0, 0
        while (come := come + sum(len(one.items) for _, _, one in self.out[known:])) < count:
            known = len(self.out)
            self.until(wire.OUT)

    def until(self, kind: int) -> dict[str, Any]:
        """Take in frames up to the first of a kind; its body if it is JSON."""
        *_, (_, body) = self.frames_until(kind)
        if kind == wire.REPORT:
            return _report(body)
        return dict(msgspec.json.decode(body)) if kind in (wire.ENDED, wire.FAILED) else {}

    def frames_until(self, kind: int) -> list[tuple[int, bytes]]:
        """Take in frames up to the first of a kind; all of them."""
        taken = []
        for frame in self._frames([self._data, self._control]):
            taken.append(frame)
            if frame[0] == kind:
                break
        return taken

    def next_report(self) -> dict[str, Any]:
        """The next one on the control channel; what the worker sends on its data channel waits."""
        for kind, body in self._frames([self._control]):
            if kind == wire.REPORT:
                return _report(body)
        raise AssertionError

    def until_heard(self) -> None:
        """Until the worker has obeyed all that was said on the control channel: then it reports again."""
        while _waiting(self._control, termios.TIOCOUTQ):
            time.sleep(0.0005)
        self._drain(self._control)
        self.next_report()

    def drain(self) -> None:
        """Take in what the worker has sent so far on its data channel."""
        self._drain(self._data)

    def until_stuck(self) -> None:
        """Until nobody has read what the worker sent for so long that it can send no more."""
        last = -1
        while (waiting := _waiting(self._data, termios.FIONREAD)) != last:
            last = waiting
            time.sleep(0.1)
        assert last > 0, "the worker has sent nothing"

    def exit_code(self) -> int:
        """Wait for the end of the process."""
        deadline = time.monotonic() + PATIENCE_S
        while time.monotonic() < deadline:
            pid, status = os.waitpid(self.pid, os.WNOHANG)
            if pid:
                self.pid = 0
                return os.waitstatus_to_exitcode(status)
            time.sleep(0.005)
        raise AssertionError("the worker has not ended")

    def until_silent(self) -> None:
        """Until both channels have ended."""
        for channel in (self._data, self._control):
            with contextlib.suppress(wire.ChannelClosed):
                for _ in self._frames([channel]):
                    pass

    def stop_listening(self) -> None:
        """As when the Spark task is over: its data channel goes first."""
        self._data.close()

    def hang_up(self) -> None:
        """As when the executor dies."""
        self._data.close()
        self._control.close()

    def _frames(self, channels: list[socket.socket]) -> Iterator[tuple[int, bytes]]:
        deadline = time.monotonic() + PATIENCE_S
        while True:
            for channel in channels:
                for kind, body in self._inboxes[channel].frames():
                    taken = bytes(body)
                    self._note(kind, taken)
                    yield kind, taken
            ready = select.select(channels, [], [], max(0.0, deadline - time.monotonic()))[0]
            assert ready, "the worker does not say what is waited for"
            for channel in ready:
                self._inboxes[channel].wait(None)

    def _drain(self, channel: socket.socket) -> None:
        inbox = self._inboxes[channel]
        while inbox.wait(0):
            pass
        for kind, body in inbox.frames():
            self._note(kind, bytes(body))

    def _note(self, kind: int, body: bytes) -> None:
        if kind in (wire.OUT, wire.ACK):
            (self.acknowledged,) = struct.unpack_from("<q", body)
        if kind == wire.OUT:
            target, place = struct.unpack_from("<iB", body, 8)
            self.out.append((target, place, decode(body[13:], self._coders)))
        elif kind == wire.ACK and body[8:]:
            self.marks.append(body[8:])
        elif kind == wire.AT:
            self.at.append(struct.unpack("<qI", body))
        elif kind == wire.MARKED:
            acknowledged, epoch, said = wire.read_marked(body)
            self.marked.append((acknowledged, epoch, msgspec.json.decode(said, type=Marked)))
        elif kind == wire.REPORT:
            self.reports.append(_report(body))
            self.taken.append(wire.read_report(body)[0])


def _report(body: bytes) -> dict[str, Any]:
    return dict(msgspec.json.decode(wire.read_report(body)[1]))


def _waiting(channel: socket.socket, which: int) -> int:
    """How much has come and was not read (FIONREAD), or was sent and not read (TIOCOUTQ)."""
    waiting = array("i", [0])
    fcntl.ioctl(channel, which, waiting)
    return waiting[0]


@contextmanager
def lone_worker(
    flow: Flow, dead_letters: str = "nowhere", *, gauge: Gauge | None = None, state: Place | None = None
) -> Iterator[LoneWorker]:
    """A worker that is gone afterwards, whatever happens."""
    data, theirs_data = socket.socketpair()
    control, theirs_control = socket.socketpair()
    pid = os.fork()
    if pid == 0:
        try:
            os.setpgid(0, 0)
            data.close()
            control.close()
            worker.main(Plan(flow.graph(), dead_letters, state), theirs_data, theirs_control, gauge=gauge)
        finally:
            os._exit(70)
    theirs_data.close()
    theirs_control.close()
    made = LoneWorker(flow, pid, data, control)
    try:
        yield made
    finally:
        made.hang_up()
        if made.pid:
            os.kill(made.pid, signal.SIGKILL)
            os.waitpid(made.pid, 0)
