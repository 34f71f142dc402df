"""The thread of a worker that hears the driver and reports to it, come what may.

The control channel carries little and is always read at the other end: neither back-pressure nor a task that
is busy for long keeps a worker from reporting, or from adopting the very order that would relieve it.
"""

import os
import select
import socket
import threading
import time
import traceback
from collections.abc import Callable
from typing import NoReturn

import msgspec

from penstock.wire.frames import (
    ALIVE,
    BEHIND,
    JOINED,
    LINK,
    SWITCHES,
    ChannelClosed,
    Inbox,
    frame,
    report_frame,
)
from penstock.wire.orders import Link, Switches
from penstock.worker.lease import Lease, leave

_ASK_EVERY_NS = 1_000_000_000  # several times within a lease


class ControlLine(threading.Thread):
    """Sleeps until the next report or a word from the driver."""

    def __init__(
        self,
        control: socket.socket,
        on_switches: Callable[[Switches], None],
        on_joined: Callable[[], None],
        on_behind: Callable[[bool], None],
        on_link: Callable[[Link], None],
        lease: Lease,
        report: Callable[[], bytes],
        taken: Callable[[], int],
        report_every_s: float,
    ) -> None:
        super().__init__(name="penstock-control", daemon=True)
        self._control = control
        self._inbox = Inbox(control)
        self._on_switches = on_switches
        self._on_joined = on_joined
        self._on_behind = on_behind
        self._on_link = on_link
        self._lease = lease
        self._report = report
        self._taken = taken
        self._report_every_ns = round(report_every_s * 1e9)

    def report_every(self, seconds: float) -> None:
        """Report that often from the last report on."""
        self._report_every_ns = round(seconds * 1e9)

    def run(self) -> None:
        """Until the bridge is gone; then the whole process goes, even in the middle of a task's item."""
        try:
            self._loop()
        except (ChannelClosed, OSError):
            leave()
        except BaseException:  # noqa: BLE001 - a worker that hears nothing would go on for ever
            traceback.print_exc()
            os._exit(1)

    def _loop(self) -> NoReturn:
        reported_ns: int | None = None  # the first report says that the process is there
        asked_ns = 0
        while True:
            now_ns = time.monotonic_ns()
            self._lease.check(now_ns)
            if reported_ns is None or now_ns - reported_ns >= self._report_every_ns:
                self._control.sendall(report_frame(self._taken(), self._report()))
                reported_ns = asked_ns = now_ns
            elif now_ns - asked_ns >= _ASK_EVERY_NS:
                self._control.sendall(frame(ALIVE))
                asked_ns = now_ns
            due_ns = min(reported_ns + self._report_every_ns, asked_ns + _ASK_EVERY_NS, self._lease.until_ns)
            wait_s = (due_ns - time.monotonic_ns()) * 1e-9
            if select.select([self._control], [], [], max(0.0, wait_s))[0]:
                self._hear()

    def _hear(self) -> None:
        self._inbox.wait(None)
        for kind, body in self._inbox.frames():
            if kind == SWITCHES:
                self._on_switches(msgspec.json.decode(body, type=Switches))
            elif kind == JOINED:
                self._on_joined()
            elif kind == BEHIND:
                self._on_behind(bool(body[0]))
            elif kind == LINK:
                link = msgspec.json.decode(body, type=Link)
                self._lease.renew(link)
                self._on_link(link)
