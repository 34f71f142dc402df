"""How a run of a flow begins on its checkpoint: at the start, and again after a failure."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import cloudpickle
from pyspark.sql import SparkSession

from penstock.epochs.looking import Kept
from penstock.flow.layers import Layout
from penstock.spark.bridge import Beginning, Bridge
from penstock.spark.checkpoint import Committed, check_sources, committed
from penstock.spark.reading import Reading
from penstock.spark.session import all_slots
from penstock.spark.state_place import cautious, committed_state, state_place
from penstock.wire.orders import Plan, Switches


@dataclass(frozen=True, slots=True)
class Launcher:
    """What a flow reads and where it commits; `is_resumable` says that the checkpoint outlives the flow."""

    spark: SparkSession
    bridge: Bridge
    flow: str
    reading: Reading
    commit_ms: int
    checkpoint: str
    is_resumable: bool
    plan: Plan
    keep_commits: int
    drop_state: tuple[str, ...] = ()

    def launch(
        self, layout: Layout, switches: Switches, died: Sequence[tuple[str, int]] | None = None
    ) -> Committed:
        """Begin after the last commit, which is returned; refused if the flow lacks a source it knows.

        `died` are the workers whose death ended it before, None if it did not run before.
        """
        known = committed(self.spark, self.checkpoint)
        check_sources(self.flow, self.checkpoint, known.sources, self.reading.starts)
        self.reading.follow(known.sources)
        graph = self.plan.graph
        place = state_place(
            self.spark, self.checkpoint, graph, known.batch, self.keep_commits, self.drop_state
        )
        if place is not None:
            place = cautious(place, graph, known.batch, died)
        self.bridge.plan = cloudpickle.dumps(replace(self.plan, state=place))
        beginning = Beginning(self.reading, known.batch + 1, self.commit_ms, self.checkpoint)
        self.bridge.start(layout, switches, beginning)
        return known

    def state(self, task: str) -> list[Kept]:
        """What a task keeps, as it was committed last."""
        return committed_state(self.spark, self.checkpoint, task)

    def slots(self) -> int:
        """The task slots that Spark has now."""
        return all_slots(self.spark)
