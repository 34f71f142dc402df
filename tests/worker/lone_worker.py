"""A worker process without Spark: forked as the zygote does, with a bridge that is this test."""

import os
import select
import socket
import struct
import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import Any

import msgspec

from penstock.flow import Flow
from penstock.flow.layers import lay_out
from penstock.stats.clock_offset import Exchange
from penstock.wire import frames as wire
from penstock.wire.envelope import Address, Envelope, ItemId, Tag, decode, dump_items, encode
from penstock.wire.orders import Plan
from penstock.wire.routes import Settings, routes
from penstock.worker import worker
from penstock.worker.sourcing import SourceOrder

PATIENCE_S = 20.0


class LoneWorker:
    """The bridge's side of one worker process."""

    def __init__(self, flow: Flow, dead_letters: str) -> None:
        self.graph = flow.graph()
        self.plan = Plan(self.graph, dead_letters)
        self.settings = Settings(
            routes=routes(lay_out(self.graph)),
            active={task.name: task.parallelism.pool for task in self.graph.tasks},
            lifetime_ms={stream.name: stream.batch_lifetime_ms for stream in self.graph.streams},
            sampling=0.0,
        )
        # The driver's clock is this machine's, unless a test says otherwise.
        self.exchange: Exchange | None = Exchange(0, 0, 0, 0)
        self.acknowledged = 0
        self.marks: list[bytes] = []
        self.at: list[tuple[int, int]] = []
        self.out: list[tuple[int, int, Envelope]] = []
        self.reports: list[dict[str, Any]] = []
        self._data, theirs_data = socket.socketpair()
        self._control, theirs_control = socket.socketpair()
        self._inboxes = {self._data: wire.Inbox(self._data), self._control: wire.Inbox(self._control)}
        self.pid = os.fork()
        if self.pid == 0:
            try:
                self._data.close()
                self._control.close()
                worker.main(self.plan, theirs_data, theirs_control)
            finally:
                os._exit(70)
        theirs_data.close()
        theirs_control.close()

    def start(self, task: str, replica: int = 0, source: SourceOrder | None = None) -> None:
        order = worker.StartOrder(task, replica, self.settings, source, self.exchange)
        self.send(wire.frame(wire.START, msgspec.json.encode(order)))

    def give(
        self,
        sequence: int,
        items: list[Any],
        *,
        stream: int = 0,
        tags: Iterable[Tag] = (),
        ids: list[ItemId | None] | None = None,
        careful: bool = False,
        poisoned: Iterable[int] = (),
        ship_ns: int | None = None,
    ) -> None:
        """A DATA frame."""
        poison = list(poisoned)
        codec = self.graph.streams[stream].codec
        body = dump_items(items, codec)
        shipped_ns = time.monotonic_ns() if ship_ns is None else ship_ns
        envelope = encode(Address(1, 0, 0), stream, 0, shipped_ns, body, len(items), codec, [*tags], ids)
        head = struct.pack("<qqBH", sequence, time.monotonic_ns(), careful, len(poison))
        self.send(wire.frame(wire.DATA, head + b"".join(struct.pack("<I", i) for i in poison) + envelope))

    def end(self, *, last: bool = False) -> dict[str, Any]:
        """An END frame; the final report."""
        self.send(wire.frame(wire.END, bytes([last])))
        return self.until(wire.ENDED)

    def send(self, data: bytes) -> None:
        self._data.sendall(data)

    def change(self, settings: Settings) -> None:
        """New settings, on the control channel."""
        self.settings = settings
        self.tell(wire.frame(wire.SETTINGS, msgspec.json.encode(settings)))

    def tell(self, data: bytes) -> None:
        """A frame on the control channel."""
        self._control.sendall(data)

    def items(self) -> list[Any]:
        return [item for _, _, envelope in self.out for item in envelope.items]

    def until(self, kind: int) -> dict[str, Any]:
        """Take in frames up to the first of a kind; its body if it is JSON."""
        for seen, body in self._frames():
            if seen == kind:
                return (
                    dict(msgspec.json.decode(body)) if kind in (wire.ENDED, wire.FAILED, wire.REPORT) else {}
                )
        raise AssertionError

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

    def stop_listening(self) -> None:
        """As when the Spark task is over: its data channel goes first."""
        self._data.close()

    def hang_up(self) -> None:
        """As when the executor dies."""
        self._data.close()
        self._control.close()

    def _frames(self) -> Iterator[tuple[int, bytes]]:
        while True:
            for inbox in self._inboxes.values():
                for kind, body in inbox.frames():
                    taken = bytes(body)
                    self._note(kind, taken)
                    yield kind, taken
            ready = select.select(list(self._inboxes), [], [], PATIENCE_S)[0]
            assert ready, "the worker says nothing"
            for channel in ready:
                self._inboxes[channel].wait(None)

    def _note(self, kind: int, body: bytes) -> None:
        if kind in (wire.OUT, wire.ACK):
            (self.acknowledged,) = struct.unpack_from("<q", body)
        if kind == wire.OUT:
            target, place = struct.unpack_from("<iB", body, 8)
            self.out.append((target, place, decode(body[13:])))
        elif kind == wire.ACK and body[8:]:
            self.marks.append(body[8:])
        elif kind == wire.AT:
            self.at.append(struct.unpack("<qI", body))
        elif kind == wire.REPORT:
            self.reports.append(msgspec.json.decode(body))


@contextmanager
def lone_worker(flow: Flow, dead_letters: str = "nowhere") -> Iterator[LoneWorker]:
    """A worker that is gone afterwards, whatever happens."""
    made = LoneWorker(flow, dead_letters)
    try:
        yield made
    finally:
        made.hang_up()
        if made.pid:
            os.kill(made.pid, 9)
            os.waitpid(made.pid, 0)
