"""What can be turned while a flow runs: the switches of now, and how a change reaches the workers."""

import logging
import threading
import time
from collections.abc import Callable

import msgspec

from penstock.flow.errors import FlowError
from penstock.flow.layers import Layout
from penstock.spark.boundaries import Boundaries
from penstock.spark.bridge import Bridge
from penstock.spark.changes import Change, check_slots, not_rescaled, rescaled, rescaling
from penstock.spark.committing import Committing, Moving
from penstock.spark.slots import Claim
from penstock.wire.orders import Switches

_LONGEST_S = 120.0
_LOOK_S = 0.02
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
        committing: Committing | None = None,
    ) -> None:
        self.layout = layout
        self.switches = switches
        self.turning = threading.RLock()
        self._bridge = bridge
        self._boundaries = boundaries
        self._claim = claim
        self._check_running = check_running
        self._committing = committing
        self._moving: Moving | None = None

    def turn(self, planned: Change) -> float | None:
        """Change the flow now, and at a boundary what has to wait for one.

        The gap of that boundary in ms, 0 if there was none, and None if there was nothing to change.
        """
        if planned.at_boundary is not None:
            check_slots(planned.at_boundary[0], self._claim.most)
        changed = planned.at_once != self.switches
        rechained = planned.at_once.chains != self.switches.chains
        if changed:
            self.publish(planned.at_once)
        if rechained and self._committing is not None:
            self._committing.hasten()
        if planned.at_mark is not None:
            self._move(planned.at_mark)
            return 0.0
        if planned.at_boundary is None:
            return 0.0 if changed else None
        layout, switches = planned.at_boundary

        def move() -> None:
            self._claim.hold(layout.slots)
            self.layout = layout
            self._bridge.change(layout)
            self.publish(switches)

        return self._boundaries.cross(move, self._check_running)

    def _move(self, then: Switches) -> None:
        """Have keys change hands at an epoch mark, and wait until they have."""
        assert self._committing is not None, "there are marks"
        now = self.switches
        moving = self._moving = self._committing.move(lambda epoch: self.publish(rescaling(now, then, epoch)))
        deadline_s = time.monotonic() + _LONGEST_S
        while not moving.over.wait(_LOOK_S):
            try:
                self._check_running()
            except BaseException:
                moving.withdraw()
                self.switches = not_rescaled(self.switches)  # for the next run, if there is one
                raise
            if self._bridge.is_exhausted() and moving.withdraw():
                return  # it is over, but for those who wait for this
            if time.monotonic() > deadline_s:
                raise FlowError(_too_long(withdrawn=moving.withdraw()))
        self.settle()

    def settle(self) -> None:
        """Replicas whose keys are elsewhere may go, if all is done; an error if it is not."""
        if not self.switches.rescales:
            return
        if self._moving is None or not self._moving.over.is_set():
            raise FlowError("keys are still changing hands after the change before; nothing was changed")
        self.publish(rescaled(self.switches))

    def begin_again(self) -> None:
        """Another run begins, at any number of replicas: whatever was under way is done with it."""
        self.switches = rescaled(self.switches)

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


def _too_long(*, withdrawn: bool) -> str:
    if withdrawn:
        return f"the epoch that was under way did not end within {_LONGEST_S:g} s; nothing was changed"
    return f"keys are changing hands for more than {_LONGEST_S:g} s; they have when the next commit is done"
