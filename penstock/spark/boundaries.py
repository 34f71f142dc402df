"""Boundaries between batches: the running batch is ended and drained, then the next begins.

What has to wait for that is changed in between.
"""

import time
from collections.abc import Callable

from penstock.flow.errors import FlowError
from penstock.spark.bridge import Bridge

_LONGEST_S = 120.0
_LOOK_MS = 50


class Boundaries:
    """Those of one running flow."""

    def __init__(self, bridge: Bridge) -> None:
        self._bridge = bridge

    def hold(self, timeout_s: float, *, closing: bool) -> bool:
        """End the running batch and hold the next; True once all is drained and committed."""
        self._bridge.end_batch(closing=closing)
        deadline = time.monotonic() + timeout_s
        while time.monotonic() < deadline and self._bridge.is_active:
            if self._bridge.await_gate(_LOOK_MS):
                return True
        return False

    def cross(self, change: Callable[[], None], check_running: Callable[[], None]) -> float:
        """Make a change between two batches; how long no source was reading, in ms.

        `check_running` raises when the flow is over.
        """
        batch = self._bridge.batch()
        started_s = time.monotonic()
        if not self.hold(_LONGEST_S, closing=False):
            check_running()
            self._bridge.release()
            raise FlowError(f"the running batch did not end within {_LONGEST_S:g} s; nothing was changed")
        change()
        self._bridge.release()
        deadline = time.monotonic() + _LONGEST_S
        while time.monotonic() < deadline and not self._bridge.is_exhausted():
            if self._bridge.await_flowing(batch + 1, _LOOK_MS):
                return self._bridge.last_boundary().gap_ms
            check_running()
        return (time.monotonic() - started_s) * 1000
