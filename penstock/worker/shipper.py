"""The thread of a worker that keeps batch lifetimes: it ships envelopes whose time has come.

It may have to wait for room in the output, for long under overload; whatever must happen then all the same
(reports, orders) is the business of the control line.
"""

import os
import select
import threading
import time
import traceback

from penstock.worker.outbox import Outbox

_FOREVER_NS = 1 << 62


class Shipper(threading.Thread):
    """Sleeps until the next deadline."""

    def __init__(self, outbox: Outbox) -> None:
        super().__init__(name="penstock-shipper", daemon=True)
        self._outbox = outbox
        self._wake = os.eventfd(0, os.EFD_NONBLOCK)
        self._sleeps_until_ns = 0
        outbox.wake_shipper = self._wake_for

    def _wake_for(self, deadline_ns: int) -> None:
        if deadline_ns < self._sleeps_until_ns:
            os.eventfd_write(self._wake, 1)

    def run(self) -> None:
        """As long as the process."""
        try:
            while True:
                self._ship()
        except BaseException:  # noqa: BLE001 - without its shipper a worker would keep its envelopes for ever
            traceback.print_exc()
            os._exit(1)

    def _ship(self) -> None:
        # Published before the deadlines are read: one set in between wakes the next select at once.
        self._sleeps_until_ns = _FOREVER_NS
        deadline_ns = self._outbox.ship_due(time.monotonic_ns())
        wait_s = None
        if deadline_ns is not None:
            self._sleeps_until_ns = deadline_ns
            wait_s = max(0.0, (deadline_ns - time.monotonic_ns()) * 1e-9)
        if select.select([self._wake], [], [], wait_s)[0]:
            os.eventfd_read(self._wake)
