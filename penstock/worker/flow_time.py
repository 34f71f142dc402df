"""One clock for all workers of a flow, wherever they run: the driver's.

Times that travel with an item are of this clock. A worker knows it from what its executor learned when it
asked the driver for news; until then it stamps UNKNOWN_NS, and what would follow from that is absent.
"""

import threading
import time

from penstock.stats.clock_offset import ClockOffset, Exchange

UNKNOWN_NS = 0


class FlowTime:
    """The driver's clock, as seen from this worker; `ahead_ns` is how far this machine's is ahead of it."""

    def __init__(self) -> None:
        self.ahead_ns: int | None = None
        self._offset = ClockOffset()
        self._learning = threading.Lock()  # orders come to the task's thread, news to the control line

    def learn(self, exchange: Exchange) -> None:
        """The executor has asked the driver again."""
        with self._learning:
            self._offset.learn(exchange)
            self.ahead_ns = self._offset.ahead_ns

    def now_ns(self) -> int:
        """The time for a stamp, or UNKNOWN_NS."""
        ahead_ns = self.ahead_ns
        return UNKNOWN_NS if ahead_ns is None else time.monotonic_ns() - ahead_ns

    def local_ns(self, flow_ns: int) -> int:
        """A time of the flow by this machine's monotonic clock; the offset between the two must be known."""
        assert self.ahead_ns is not None, "a source is started after its executor has asked the driver"
        return flow_ns + self.ahead_ns

    def of(self, local_ns: int) -> int:
        """A time of this machine's monotonic clock as one of the flow, or UNKNOWN_NS."""
        return UNKNOWN_NS if self.ahead_ns is None else local_ns - self.ahead_ns
