"""Until when a worker may act, and how it ends itself.

A worker whose executor is cut off from the driver, or stands still, must not write to a sink once the driver
has started the flow again elsewhere. So its executor prolongs a lease as long as the driver answers, and a
worker whose lease is over ends itself. `org.penstock.bridge.Lease` is the other side.
"""

import os
import signal
import sys
from typing import NoReturn

from penstock.wire.orders import Link


class Lease:
    """By `time.monotonic_ns`; without an end in an executor that cannot be cut off."""

    def __init__(self, link: Link) -> None:
        self.until_ns = 0
        self.renew(link)

    def renew(self, link: Link) -> None:
        """What the executor heard last says until when; it never gets shorter."""
        until_ns = sys.maxsize if link.lease_until_ns is None else link.lease_until_ns
        self.until_ns = max(self.until_ns, until_ns)

    def check(self, now_ns: int) -> None:
        """Go on, or be no more."""
        if now_ns > self.until_ns:
            leave()


def leave() -> NoReturn:
    """End this process and whatever the user's code forked: nothing it does can take effect any more."""
    if os.getpgid(0) == os.getpid():
        os.killpg(0, signal.SIGKILL)
    os._exit(0)
