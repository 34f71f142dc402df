"""The control line of a worker: it hears and reports, whatever the other threads do."""

import os
import queue
import signal
import socket
import time
from collections.abc import Callable, Iterator
from typing import Any

import msgspec
import pytest

from penstock.stats.clock_offset import Exchange
from penstock.wire import frames as wire
from penstock.wire.orders import Link, Switches
from penstock.worker.control_line import ControlLine
from penstock.worker.lease import Lease, leave

PATIENCE_S = 20.0
FOR_EVER = Link()


class LeftError(Exception):
    """In a worker, leaving never returns."""


class Bench:
    """A control line, and everything it does as events."""

    def __init__(self, control: socket.socket, lease: Lease) -> None:
        self.events: queue.Queue[tuple[str, Any]] = queue.Queue()
        self.report = b"report"
        self.line = ControlLine(
            control=control,
            on_switches=lambda switches: self.events.put(("switches", switches)),
            on_joined=lambda: self.events.put(("joined", None)),
            on_behind=lambda behind: self.events.put(("behind", behind)),
            on_link=lambda link: self.events.put(("link", link)),
            lease=lease,
            report=lambda: self.report,
            taken=lambda: 7,
            report_every_s=3600.0,
        )

    def next(self) -> tuple[str, Any]:
        return self.events.get(timeout=PATIENCE_S)


Driver = tuple[socket.socket, Callable[..., Bench]]


@pytest.fixture
def driver(monkeypatch: pytest.MonkeyPatch) -> Iterator[Driver]:
    """The driver's end of the control channel, and a way to start a control line at the other."""
    ours, theirs = socket.socketpair()
    benches: list[Bench] = []

    def start(link: Link = FOR_EVER) -> Bench:
        benches.append(Bench(theirs, Lease(link)))
        benches[0].line.start()
        return benches[0]

    monkeypatch.setattr(os, "getpgid", lambda pid: 0)  # as if a worker led no group: a test's may be pytest's
    monkeypatch.setattr(os, "_exit", lambda code: benches[0].events.put(("exit", code)))
    with ours, theirs:
        ours.settimeout(PATIENCE_S)
        yield ours, start
        ours.close()
        for bench in benches:
            bench.line.join(PATIENCE_S)
            assert not bench.line.is_alive()


def reports(ours: socket.socket) -> Iterator[bytes]:
    inbox = wire.Inbox(ours)
    while inbox.wait(None):
        for kind, body in inbox.frames():
            if kind == wire.REPORT:
                taken, report = wire.read_report(body)
                assert taken == 7
                yield report
            else:
                assert (kind, bytes(body)) == (wire.ALIVE, b"")


def order(version: int) -> Switches:
    return Switches(routes={}, active={"work": version}, lifetime_ms={}, sampling=0.5, version=version)


def ordered(version: int) -> bytes:
    return wire.frame(wire.SWITCHES, msgspec.json.encode(order(version)))


def test_the_first_report_comes_at_once(driver: Driver) -> None:
    ours, start = driver
    start()
    assert next(reports(ours)) == b"report"


def test_reports_come_as_often_as_is_wanted_now(driver: Driver) -> None:
    ours, start = driver
    bench = start()
    reported = reports(ours)
    assert next(reported) == b"report"
    bench.line.report_every(0.01)
    ours.sendall(ordered(1))  # as when the wish comes by the control channel
    began_s = time.monotonic()
    assert [next(reported) for _ in range(4)] == [b"report"] * 4
    assert time.monotonic() - began_s >= 0.025, "and no more often"


def test_a_report_is_not_put_off_by_what_is_heard(driver: Driver) -> None:
    ours, start = driver
    bench = start()
    reported = reports(ours)
    assert next(reported) == b"report"
    bench.line.report_every(0.05)
    bench.report = b"another"
    deadline = time.monotonic() + PATIENCE_S
    inbox = wire.Inbox(ours)
    while not inbox.wait(0) and time.monotonic() < deadline:
        ours.sendall(wire.frame(wire.JOINED))
        time.sleep(0.001)
    assert [wire.read_report(body) for _, body in inbox.frames()] == [(7, b"another")]


def test_orders_are_heard_however_they_are_cut_up(driver: Driver) -> None:
    ours, start = driver
    bench = start()
    sent = ordered(1) + wire.frame(99, b"unknown") + ordered(2)
    for at in range(0, len(sent), 3):
        ours.sendall(sent[at : at + 3])
    assert bench.next() == ("switches", order(1))
    assert bench.next() == ("switches", order(2))


def test_it_hears_whether_receivers_are_behind(driver: Driver) -> None:
    ours, start = driver
    bench = start()
    ours.sendall(wire.frame(wire.BEHIND, b"\x01") + wire.frame(wire.BEHIND, b"\x00"))
    assert [bench.next() for _ in range(2)] == [("behind", True), ("behind", False)]


def linked(link: Link) -> bytes:
    return wire.frame(wire.LINK, msgspec.json.encode(link))


def within(seconds: float) -> Link:
    return Link(lease_until_ns=time.monotonic_ns() + round(seconds * 1e9))


def test_what_the_executor_hears_of_the_driver_is_heard(driver: Driver) -> None:
    ours, start = driver
    bench = start()
    ours.sendall(linked(Link()) + linked(Link(Exchange(1, 2, 3, 4), 5)))
    assert bench.next() == ("link", Link())
    assert bench.next() == ("link", Link(Exchange(1, 2, 3, 4), 5))


def test_a_worker_that_reports_seldom_asks_for_its_lease_all_the_same(driver: Driver) -> None:
    ours, start = driver
    start()
    inbox = wire.Inbox(ours)
    kinds: list[int] = []
    while kinds.count(wire.ALIVE) < 2:
        inbox.wait(PATIENCE_S)
        kinds += [kind for kind, _ in inbox.frames()]
    assert kinds == [wire.REPORT, wire.ALIVE, wire.ALIVE]


def test_a_lease_that_is_over_ends_the_process(driver: Driver) -> None:
    """Without a word from anybody: the executor may stand still."""
    _, start = driver
    began_s = time.monotonic()
    bench = start(within(0.3))
    assert bench.next() == ("exit", 0)
    assert time.monotonic() - began_s >= 0.3


def test_a_lease_that_is_prolonged_goes_on(driver: Driver) -> None:
    ours, start = driver
    bench = start(within(0.3))
    longer = within(3600)
    ours.sendall(linked(longer))
    assert bench.next() == ("link", longer)
    with pytest.raises(queue.Empty):
        bench.events.get(timeout=0.5)
    ours.sendall(linked(within(0)))
    assert bench.next()[0] == "link"
    with pytest.raises(queue.Empty):
        bench.events.get(timeout=0.2)


def test_that_chained_tasks_have_joined_is_heard(driver: Driver) -> None:
    ours, start = driver
    bench = start()
    ours.sendall(wire.frame(wire.JOINED))
    assert bench.next() == ("joined", None)


def test_the_process_goes_with_the_bridge(driver: Driver) -> None:
    ours, start = driver
    bench = start()
    ours.close()
    assert bench.next() == ("exit", 0)


def test_a_line_that_fails_takes_its_worker_along(driver: Driver, capfd: pytest.CaptureFixture[str]) -> None:
    """The bridge starts another one; a worker that hears nothing would go on for ever."""
    ours, start = driver
    bench = start()
    ours.sendall(wire.frame(wire.SWITCHES, b"no order at all"))
    assert bench.next() == ("exit", 1)
    assert "DecodeError" in capfd.readouterr().err


@pytest.mark.parametrize("leads", [True, False])
def test_whoever_leads_a_group_takes_it_along(leads: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """But never somebody else's: a worker that leads none ends alone."""

    def end(*how: int) -> None:
        raise LeftError(*how)

    monkeypatch.setattr(os, "getpgid", lambda pid: os.getpid() if leads else 1)
    monkeypatch.setattr(os, "killpg", end)
    monkeypatch.setattr(os, "_exit", end)
    with pytest.raises(LeftError) as left:
        leave()
    assert left.value.args == ((0, signal.SIGKILL) if leads else (0,))
