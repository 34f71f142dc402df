"""The port between the controller and whatever runs the flow."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from penstock.policy.decision import Decision
    from penstock.stats.snapshot import Snapshot


class Engine(Protocol):
    """Something that runs a flow: Spark, the simulator, or a recording."""

    def observe(self) -> Snapshot | None:
        """What the flow did in the interval that ends now; None when the flow has ended."""
        ...

    def apply(self, decision: Decision) -> None:
        """Bring the flow to these settings; they may take effect later."""
        ...
