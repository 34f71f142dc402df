"""A running flow as somebody sees it who looks from time to time: what was measured since the last look."""

from collections.abc import Callable

from penstock.flow.chains import all_chains
from penstock.flow.layers import Layout
from penstock.spark.metrics import Ledger
from penstock.spark.outside import Outside, cpu_of_everything
from penstock.spark.routes import Settings
from penstock.stats.observed import observed
from penstock.stats.snapshot import Snapshot


class View:
    """Several may look, each at intervals of their own. `present` gives the layout and settings of now."""

    def __init__(self, ledger: Ledger, present: Callable[[], tuple[Layout, Settings]]) -> None:
        self._ledger = ledger
        self._present = present
        self._window = ledger.window()
        self._outside = Outside(cpu_of_everything())

    def snapshot(self, interval_s: float) -> Snapshot:
        """What was measured since the last call, `interval_s` seconds ago, as a policy reads it."""
        layout, settings = self._present()
        snapshot = observed(
            layout.graph,
            self._window.take_summary(),
            interval_s=interval_s,
            active=settings.active,
            lifetimes_ms=settings.lifetime_ms,
            chains=all_chains(layout, settings.chains),
        )
        receivers = {stream.name: stream.receiver for stream in layout.graph.streams}
        return self._outside.complete(
            snapshot, layout, self._ledger.backlog(receivers), self._ledger.latency()
        )
