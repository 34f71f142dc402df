"""How a run of a flow begins on its checkpoint: at the start, and again after a failure."""

from dataclasses import dataclass

import msgspec
from pyspark.sql import SparkSession

from penstock.flow.layers import Layout
from penstock.spark.bridge import Beginning, Bridge, Split
from penstock.spark.checkpoint import POSITIONS_VERSION, Committed, Positions, check_sources, committed
from penstock.spark.session import all_slots
from penstock.wire.orders import Position, Switches


@dataclass(frozen=True, slots=True)
class Launcher:
    """Where a flow reads and commits; `starts` are the positions of splits that no commit knows.

    `is_resumable` says that the checkpoint outlives the flow.
    """

    spark: SparkSession
    bridge: Bridge
    flow: str
    splits: list[Split]
    starts: dict[str, dict[str, Position]]
    commit_ms: int
    checkpoint: str
    is_resumable: bool

    def launch(self, layout: Layout, switches: Switches) -> Committed:
        """Begin after the last commit, which is returned; refused if the flow lacks a source it knows."""
        known = committed(self.spark, self.checkpoint)
        check_sources(self.flow, self.checkpoint, known.sources, self.starts)
        beginning = Beginning(
            self.splits,
            msgspec.json.encode(Positions(POSITIONS_VERSION, self.starts)),
            known.batch + 1,
            self.commit_ms,
            self.checkpoint,
        )
        self.bridge.start(layout, switches, beginning)
        return known

    def slots(self) -> int:
        """The task slots that Spark has now."""
        return all_slots(self.spark)
