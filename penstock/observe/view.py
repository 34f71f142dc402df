"""A running flow as somebody sees it who looks from time to time: what was measured since the last look."""

from collections.abc import Callable

from penstock.flow.chains import all_chains
from penstock.flow.layers import Layout
from penstock.observe.outside import Outside
from penstock.observe.reported import Reported
from penstock.stats.observed import observed
from penstock.stats.snapshot import Snapshot
from penstock.wire.orders import Switches


class View:
    """Several may look, each at intervals of their own.

    `present` gives the layout and switches of now, `cpu_s` the CPU seconds of all the flow consists of, None
    where that is not all on this machine.
    """

    def __init__(
        self,
        reported: Reported,
        present: Callable[[], tuple[Layout, Switches]],
        cpu_s: Callable[[], float] | None,
    ) -> None:
        self._reported = reported
        self._present = present
        self._window = reported.window()
        self._outside = Outside(cpu_s)

    def snapshot(self, interval_s: float) -> Snapshot:
        """What was measured since the last call, `interval_s` seconds ago, as a policy reads it."""
        layout, switches = self._present()
        snapshot = observed(
            layout.graph,
            self._window.take_summary(),
            interval_s=interval_s,
            active=switches.active,
            lifetimes_ms=switches.lifetime_ms,
            chains=all_chains(layout, switches.chains),
        )
        receivers = {stream.name: stream.receiver for stream in layout.graph.streams}
        return self._outside.complete(
            snapshot, layout, self._reported.backlog(receivers), self._reported.latency()
        )
