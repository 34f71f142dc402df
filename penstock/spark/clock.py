"""The second thread of a worker keeps batch lifetimes, hears the driver and reports, come what may."""

import os
import select
import socket
import threading
import time
import traceback
from collections.abc import Callable

import msgspec

from penstock.spark.outbox import Outbox
from penstock.spark.wire import CLOCK, JOINED, REPORT, SETTINGS, ChannelClosed, Inbox, frame
from penstock.stats.clock_offset import Exchange


class Clock(threading.Thread):
    """Sleeps until the next deadline, the next report or a word from the driver."""

    def __init__(
        self,
        control: socket.socket,
        outbox: Outbox,
        on_settings: Callable[[bytes], None],
        on_joined: Callable[[], None],
        on_exchange: Callable[[Exchange], None],
        report: Callable[[], bytes],
        report_every_s: float,
    ) -> None:
        super().__init__(name="penstock-clock", daemon=True)
        self._control = control
        self._inbox = Inbox(control)
        self._outbox = outbox
        self._on_settings = on_settings
        self._on_joined = on_joined
        self._on_exchange = on_exchange
        self._report = report
        self._report_every_ns = round(report_every_s * 1e9)
        self._wake = os.eventfd(0, os.EFD_NONBLOCK)
        self._sleeps_until_ns = 0
        outbox.wake_clock = self._wake_for

    def report_every(self, seconds: float) -> None:
        """Report that often from the last report on."""
        self._report_every_ns = round(seconds * 1e9)

    def _wake_for(self, deadline_ns: int) -> None:
        if deadline_ns < self._sleeps_until_ns:
            os.eventfd_write(self._wake, 1)

    def run(self) -> None:
        """Until the bridge is gone; then the whole process goes, even in the middle of a task's item."""
        try:
            self._loop()
        except (ChannelClosed, OSError):
            os._exit(0)
        except BaseException:  # noqa: BLE001 - without its clock a worker would keep its envelopes for ever
            traceback.print_exc()
            os._exit(1)

    def _loop(self) -> None:
        reported_ns: int | None = None  # the first report says that the process is there
        watched: list[socket.socket | int] = [self._control, self._wake]
        while True:
            next_report_ns = 0 if reported_ns is None else reported_ns + self._report_every_ns
            # Published before the deadlines are read: one set in between wakes the next select at once.
            self._sleeps_until_ns = next_report_ns
            now_ns = time.monotonic_ns()
            deadline_ns = self._outbox.ship_due(now_ns)
            if deadline_ns is not None and deadline_ns < next_report_ns:
                self._sleeps_until_ns = deadline_ns
            if now_ns >= next_report_ns:
                self._control.sendall(frame(REPORT, self._report()))
                reported_ns = now_ns
                continue
            wait_s = (self._sleeps_until_ns - time.monotonic_ns()) * 1e-9
            ready = select.select(watched, [], [], max(0.0, wait_s))[0]
            if self._wake in ready:
                os.eventfd_read(self._wake)
            if self._control in ready:
                self._inbox.wait(None)
                for kind, body in self._inbox.frames():
                    if kind == SETTINGS:
                        self._on_settings(bytes(body))
                    elif kind == JOINED:
                        self._on_joined()
                    elif kind == CLOCK:
                        self._heard_exchange(msgspec.json.decode(body, type=Exchange | None))

    def _heard_exchange(self, exchange: Exchange | None) -> None:
        """The bridge has none before its first question to the driver was answered."""
        if exchange is not None:
            self._on_exchange(exchange)
