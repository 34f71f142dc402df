"""Somebody on the way between two executors, who hears what they say and may change it."""

import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress

from tests.spark.ends import HOST

Hook = Callable[[bytes], bytes]
LENGTH_BYTES = 8
BUFFER_BYTES = 1 << 16


class Direction:
    """From one of the two to the other, message by message: encrypted or not, each begins with its length."""

    def __init__(self, source: socket.socket, target: socket.socket) -> None:
        self.heard: list[bytes] = []
        self.change: Hook = bytes
        self._source = source
        self._target = target

    def say(self, data: bytes) -> None:
        with suppress(OSError):
            self._target.sendall(data)

    def pass_on(self) -> None:
        with suppress(OSError), self._source.makefile("rb") as source:
            while length := source.read(LENGTH_BYTES):
                message = length + source.read(int.from_bytes(length) - LENGTH_BYTES)
                self.heard.append(message)
                self.say(self.change(message))
        for end in (self._source, self._target):  # one that is lost is lost for both
            with suppress(OSError):
                end.shutdown(socket.SHUT_RDWR)


class Between:
    """One connection through it; `prepare` may change either direction before anything is said."""

    def __init__(self, port: int) -> None:
        self.server = socket.create_server((HOST, 0))
        self.port = int(self.server.getsockname()[1])
        self.prepare: Callable[[], None] = lambda: None
        self.from_caller: Direction
        self.from_called: Direction
        self._called = port
        self._sockets: list[socket.socket] = []
        self._threads: list[threading.Thread] = []

    def run(self) -> None:
        with suppress(OSError):
            caller, _ = self.server.accept()
            called = socket.socket()
            called.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, BUFFER_BYTES)
            called.connect((HOST, self._called))
            self._sockets += caller, called
            self.from_caller, self.from_called = Direction(caller, called), Direction(called, caller)
            self.prepare()
            for direction in (self.from_caller, self.from_called):
                thread = threading.Thread(target=direction.pass_on, daemon=True)
                thread.start()
                self._threads.append(thread)

    def close(self) -> None:
        for end in (self.server, *self._sockets):
            end.close()


@contextmanager
def between(port: int) -> Iterator[Between]:
    made = Between(port)
    threading.Thread(target=made.run, daemon=True).start()
    try:
        yield made
    finally:
        made.close()


def only(number: int, change: Hook) -> Hook:
    """Changes the message of that number, from 0 on."""
    passed = 0

    def changed(data: bytes) -> bytes:
        nonlocal passed
        passed += 1
        return change(data) if passed == number + 1 else data

    return changed
