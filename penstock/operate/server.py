"""The driver's side: a socket that answers commands to one flow, until the flow is over."""

import logging
import socket
import threading
from collections.abc import Callable
from contextlib import closing, suppress
from pathlib import Path

from penstock.operate.line import Line, stranger
from penstock.operate.place import BEING_MADE, PlaceError, check, clear, leave, prepare, socket_path
from penstock.operate.protocol import (
    REQUEST_BYTES,
    Answer,
    AskStatus,
    Greeting,
    ProtocolError,
    Refused,
    Request,
    Stop,
    decode_request,
)

_ONLY_OWNER = 0o600
_MOST_CALLERS = 16
_IDLE_S = 60.0
_END_S = 5.0
_AGAIN_S = 0.1
_TRIES = 10
_log = logging.getLogger("penstock.operate")


class Server:
    """Every caller has a thread; `answer` is called in it, and may take its time."""

    def __init__(self, greeting: Greeting, answer: Callable[[Request], Answer], place: Path) -> None:
        self.path = socket_path(place, greeting.pid, greeting.run)
        self._greeting = greeting
        self._answer = answer
        self._callers: set[socket.socket] = set()
        self._lock = threading.Lock()  # threads of callers come and go
        self._closed = threading.Event()
        self._listener = _listening(self.path)
        self._accepting = threading.Thread(target=self._accept, name="penstock-commands", daemon=True)
        self._accepting.start()

    def close(self) -> None:
        """No more requests; answers that are being given are given. May be called twice, and by a caller."""
        self._closed.set()
        self.path.unlink(missing_ok=True)
        with suppress(OSError):
            self._listener.shutdown(socket.SHUT_RDWR)  # wakes whoever accepts
        self._accepting.join(_END_S)
        self._listener.close()
        leave(self.path.parent)
        with self._lock:
            for caller in self._callers:
                with suppress(OSError):
                    caller.shutdown(socket.SHUT_RD)

    def _accept(self) -> None:
        while True:
            try:
                caller, _ = self._listener.accept()
            except OSError:  # closed, or the driver has no descriptor left for the moment
                if self._closed.wait(_AGAIN_S):
                    return
                continue
            with self._lock:
                is_welcome = stranger(caller) is None and len(self._callers) < _MOST_CALLERS
                if is_welcome:
                    self._callers.add(caller)
            if is_welcome:
                threading.Thread(
                    target=self._serve, args=[caller], name="penstock-command", daemon=True
                ).start()
            else:
                caller.close()

    def _serve(self, caller: socket.socket) -> None:
        caller.settimeout(_IDLE_S)
        try:
            with closing(Line(caller, REQUEST_BYTES)) as line:
                line.send(self._greeting)
                while (text := line.receive()) is not None:
                    self._reply(line, text)
        except (OSError, ProtocolError):
            return  # the caller has gone, or is none
        finally:
            with self._lock:
                self._callers.discard(caller)

    def _reply(self, line: Line, text: bytes) -> None:
        try:
            request = decode_request(text)
        except ProtocolError as problem:
            line.send(Refused(why=str(problem)))
            return
        if not isinstance(request, AskStatus):
            _log.info("flow %s: told to %s", self._greeting.flow, text.decode())
        if not isinstance(request, Stop):
            line.send(self._answered(request))
            return

        def tell() -> None:
            with suppress(OSError):
                line.send(self._answered(request))

        # A driver that ends with its flow waits for such a thread: who stopped it is told how that went.
        stopping = threading.Thread(target=tell, name="penstock-stopping", daemon=False)
        stopping.start()
        stopping.join()

    def _answered(self, request: Request) -> Answer:
        try:
            return self._answer(request)
        except Exception as problem:  # noqa: BLE001 - whatever it is, the flow goes on
            _log.exception("flow %s: a command could not be answered", self._greeting.flow)
            return Refused(why=f"the driver could not answer: {problem!r}", failed=True)


def _listening(path: Path) -> socket.socket:
    """In a directory that is made if need be; others may just be leaving it, and remove it then."""
    for _ in range(_TRIES):
        with suppress(FileNotFoundError):
            check(path.parent)
            clear(path.parent)
        prepare(path.parent)
        with suppress(FileNotFoundError):
            return _bound(path)
    raise PlaceError(f"{path.parent} vanishes while it is used")


def _bound(path: Path) -> socket.socket:
    """Gets its name when somebody listens: one that refuses is of a driver that is dead."""
    fresh = path.with_suffix(BEING_MADE)
    listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    try:
        listener.bind(str(fresh))
        fresh.chmod(_ONLY_OWNER)
        listener.listen(_MOST_CALLERS)
        fresh.replace(path)
    except OSError:
        listener.close()
        fresh.unlink(missing_ok=True)
        raise
    return listener
