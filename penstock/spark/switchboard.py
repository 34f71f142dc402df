"""What can be turned while a flow runs: the switches of now, and how a change reaches the workers."""

import logging
import threading
from collections.abc import Callable

import msgspec

from penstock.flow.layers import Layout
from penstock.spark.boundaries import Boundaries
from penstock.spark.bridge import Bridge
from penstock.spark.changes import Change, check_slots
from penstock.spark.slots import Claim
from penstock.wire.orders import Switches

_log = logging.getLogger("penstock.switches")


class Switchboard:
    """The layout and the switches of a running flow. One change at a time: hold `turning` around each."""

    def __init__(
        self,
        layout: Layout,
        switches: Switches,
        bridge: Bridge,
        boundaries: Boundaries,
        claim: Claim,
        check_running: Callable[[], None],
    ) -> None:
        self.layout = layout
        self.switches = switches
        self.turning = threading.RLock()
        self._bridge = bridge
        self._boundaries = boundaries
        self._claim = claim
        self._check_running = check_running

    def turn(self, planned: Change) -> float | None:
        """Change the flow now, and at a boundary what has to wait for one.

        The gap of that boundary in ms, 0 if there was none, and None if there was nothing to change.
        """
        if planned.at_boundary is not None:
            check_slots(planned.at_boundary[0], self._claim.most)
        changed = planned.at_once != self.switches
        if changed:
            self.publish(planned.at_once)
        if planned.at_boundary is None:
            return 0.0 if changed else None
        layout, switches = planned.at_boundary

        def move() -> None:
            self._claim.hold(layout.slots)
            self.layout = layout
            self._bridge.change(layout)
            self.publish(switches)

        return self._boundaries.cross(move, self._check_running)

    def read_more(self, add: Callable[[], None]) -> float:
        """Deal the splits out anew at a boundary, when `add` has added some; its gap in ms."""

        def move() -> None:
            add()
            self._bridge.change(self.layout)

        return self._boundaries.cross(move, self._check_running)

    def publish(self, switches: Switches) -> None:
        """Make switches known to all workers; each order has a number, and workers follow the highest."""
        self.switches = msgspec.structs.replace(switches, version=self.switches.version + 1)
        self._bridge.publish(self.switches)
        _log.debug(
            "order %d: replicas %s, lifetimes %s ms",
            self.switches.version,
            switches.active,
            switches.lifetime_ms,
        )
