"""The shipper of a worker: it ends batch lifetimes while the task's thread does something else."""

import os
import queue
import threading
from collections.abc import Callable, Iterator
from typing import NoReturn

import pytest

from penstock.flow.graph import Stream
from penstock.wire import frames as wire
from penstock.wire.routes import StreamRoute
from penstock.worker.outbox import Outbox, OutStream
from penstock.worker.shipper import Shipper

PATIENCE_S = 20.0


class Bench:
    """A shipper, and everything it does as events."""

    def __init__(self) -> None:
        self.events: queue.Queue[tuple[str, bytes]] = queue.Queue()
        self.room = threading.Event()
        self.room.set()
        self.outbox = Outbox(self._send, 0, with_ids=False)
        self.shipper = Shipper(self.outbox)

    def stream(self, lifetime_ms: float) -> OutStream:
        made = OutStream(self.outbox, Stream("a->b", "a", "out", "b", batch_lifetime_ms=lifetime_ms), 0)
        made.lay(StreamRoute(1, 0, 1, 0, False), 1)
        self.outbox.streams.append(made)
        return made

    def next(self) -> tuple[str, bytes]:
        return self.events.get(timeout=PATIENCE_S)

    def end(self) -> None:
        """A shipper lives as long as its process: here it is made to fail."""
        self.outbox.ship_due = _fail  # type: ignore[method-assign]
        self.outbox.wake_shipper(-1)
        self.shipper.join(PATIENCE_S)
        assert not self.shipper.is_alive()

    def _send(self, data: bytes) -> None:
        self.events.put(("sent", data))
        self.room.wait(PATIENCE_S)


def _fail(now_ns: int) -> NoReturn:
    raise RuntimeError("the test is over")


@pytest.fixture
def start(monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[[], Bench]]:
    """A way to start a shipper in this process."""
    benches: list[Bench] = []

    def make() -> Bench:
        benches.append(Bench())
        benches[0].shipper.start()
        return benches[0]

    monkeypatch.setattr(os, "_exit", lambda code: benches[0].events.put(("exit", bytes([code]))))
    yield make
    for bench in benches:
        bench.room.set()
        bench.end()


def test_a_lifetime_ends_without_anybody_calling(start: Callable[[], Bench]) -> None:
    bench = start()
    stream = bench.stream(3)
    for item in range(3):
        stream.put(item)
        what, data = bench.next()
        assert (what, data[4]) == ("sent", wire.OUT)


def test_a_shorter_lifetime_is_not_kept_waiting_by_a_longer_one(start: Callable[[], Bench]) -> None:
    bench = start()
    slow, fast = bench.stream(3_600_000), bench.stream(2)
    slow.put("stays")
    fast.put("goes")
    assert b"goes" in bench.next()[1]
    assert bench.events.empty()
    assert slow.is_open


def test_what_was_put_while_it_waited_for_room_leaves_when_there_is_some(start: Callable[[], Bench]) -> None:
    bench = start()
    first, second = bench.stream(1), bench.stream(1)
    bench.room.clear()
    first.put("first")
    assert b"first" in bench.next()[1]
    putting = threading.Thread(target=second.put, args=("second",))
    putting.start()
    assert bench.events.empty()
    bench.room.set()
    putting.join(PATIENCE_S)
    assert b"second" in bench.next()[1]


def test_a_shipper_that_fails_takes_its_worker_along(
    start: Callable[[], Bench], capfd: pytest.CaptureFixture[str]
) -> None:
    """The bridge starts another one; a worker without a shipper would keep its envelopes for ever."""
    bench = start()
    stream = bench.stream(1)
    stream.put(lambda: "cannot be pickled")
    assert bench.next() == ("exit", b"\x01")
    assert "Traceback" in capfd.readouterr().err
