"""The clock of a worker: it ships, listens and reports while the task's thread does something else."""

import os
import queue
import socket
from collections.abc import Callable, Iterator

import msgspec
import pytest

from penstock.flow.graph import Stream
from penstock.wire import frames as wire
from penstock.wire.routes import StreamRoute
from penstock.worker.outbox import Outbox, OutStream
from penstock.worker.shipper import Clock

PATIENCE_S = 20.0


class Bench:
    """A running clock, and everything it does as events."""

    def __init__(self, control: socket.socket, report_every_s: float = 3600.0) -> None:
        self.events: queue.Queue[tuple[str, bytes]] = queue.Queue()
        self.outbox = Outbox(lambda data: self.events.put(("sent", data)), 0, with_ids=False)
        self.clock = Clock(
            control=control,
            outbox=self.outbox,
            on_settings=lambda json: self.events.put(("settings", json)),
            on_joined=lambda: self.events.put(("joined", b"")),
            on_exchange=lambda exchange: self.events.put(("exchange", msgspec.json.encode(exchange))),
            report=lambda: b"report",
            report_every_s=report_every_s,
        )

    def stream(self, lifetime_ms: float) -> OutStream:
        made = OutStream(self.outbox, Stream("a->b", "a", "out", "b", batch_lifetime_ms=lifetime_ms), 0)
        made.lay(StreamRoute(1, 0, 1, 0, False), 1)
        self.outbox.streams.append(made)
        return made

    def next(self) -> tuple[str, bytes]:
        return self.events.get(timeout=PATIENCE_S)


@pytest.fixture
def driver(monkeypatch: pytest.MonkeyPatch) -> Iterator[tuple[socket.socket, Callable[[], Bench]]]:
    """The driver's end of the control channel, and a way to start a clock at the other."""
    ours, theirs = socket.socketpair()
    benches: list[Bench] = []

    def start() -> Bench:
        benches.append(Bench(theirs))
        return benches[0]

    def leave(code: int) -> None:
        benches[0].events.put(("exit", bytes([code])))

    monkeypatch.setattr(os, "_exit", leave)
    with ours, theirs:
        ours.settimeout(PATIENCE_S)
        yield ours, start
        ours.close()
        for bench in benches:
            bench.clock.join(PATIENCE_S)
            assert not bench.clock.is_alive()


Driver = tuple[socket.socket, Callable[[], Bench]]


def test_the_first_report_comes_at_once(driver: Driver) -> None:
    ours, start = driver
    start().clock.start()
    inbox = wire.Inbox(ours)
    inbox.wait(None)
    assert [(kind, bytes(body)) for kind, body in inbox.frames()] == [(wire.REPORT, b"report")]


def test_reports_come_as_often_as_is_wanted_now(driver: Driver) -> None:
    ours, start = driver
    bench = start()
    bench.clock.start()
    reports = _reports(ours)
    assert next(reports) == b"report"
    bench.clock.report_every(0.01)
    ours.sendall(wire.frame(wire.SETTINGS, b"heard"))  # as when the wish comes by the control channel
    assert [next(reports) for _ in range(3)] == [b"report"] * 3


def _reports(ours: socket.socket) -> Iterator[bytes]:
    inbox = wire.Inbox(ours)
    while inbox.wait(None):
        yield from (bytes(body) for _, body in inbox.frames())


def test_a_lifetime_ends_without_anybody_calling(driver: Driver) -> None:
    _, start = driver
    bench = start()
    stream = bench.stream(3)
    bench.clock.start()
    for item in range(3):
        stream.put(item)
        what, data = bench.next()
        assert (what, data[4]) == ("sent", wire.OUT)


def test_a_shorter_lifetime_is_not_kept_waiting_by_a_longer_one(driver: Driver) -> None:
    _, start = driver
    bench = start()
    slow, fast = bench.stream(3_600_000), bench.stream(2)
    bench.clock.start()
    slow.put("stays")
    fast.put("goes")
    assert b"goes" in bench.next()[1]
    assert bench.events.empty()
    assert slow.is_open


def test_settings_are_heard_however_they_are_cut_up(driver: Driver) -> None:
    ours, start = driver
    bench = start()
    bench.clock.start()
    sent = wire.frame(wire.SETTINGS, b"one") + wire.frame(99, b"unknown") + wire.frame(wire.SETTINGS, b"two")
    for at in range(0, len(sent), 3):
        ours.sendall(sent[at : at + 3])
    assert bench.next() == ("settings", b"one")
    assert bench.next() == ("settings", b"two")


def test_exchanges_of_times_are_heard(driver: Driver) -> None:
    ours, start = driver
    bench = start()
    bench.clock.start()
    ours.sendall(wire.frame(wire.CLOCK, b"null") + wire.frame(wire.CLOCK, b"[1,2,3,4]"))
    assert bench.next() == ("exchange", b"[1,2,3,4]")


def test_the_process_goes_with_the_bridge(driver: Driver) -> None:
    ours, start = driver
    bench = start()
    bench.clock.start()
    ours.close()
    assert bench.next() == ("exit", b"\x00")


def test_a_clock_that_fails_takes_its_worker_along(driver: Driver, capfd: pytest.CaptureFixture[str]) -> None:
    """The bridge starts another one; a worker without a clock would keep its envelopes for ever."""
    _, start = driver
    bench = start()
    stream = bench.stream(1)
    bench.clock.start()
    stream.put(lambda: "cannot be pickled")
    assert bench.next() == ("exit", b"\x01")
    assert "Traceback" in capfd.readouterr().err
