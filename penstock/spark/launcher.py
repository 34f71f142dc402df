"""How a run of a flow begins on its checkpoint: at the start, and again after a failure."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import cloudpickle
from pyspark.sql import SparkSession

from penstock.epochs.boundary import Place
from penstock.epochs.looking import Kept
from penstock.epochs.output import Sinks
from penstock.flow.layers import Layout
from penstock.observe.reported import CommitTotals
from penstock.spark.bridge import Beginning, Bridge
from penstock.spark.checkpoint import Committed, check_sources, committed
from penstock.spark.committing import Committing
from penstock.spark.directory import Directory
from penstock.spark.reading import Reading
from penstock.spark.session import all_slots
from penstock.spark.state_place import (
    NoRoom,
    Room,
    begin_marked,
    cautious,
    committed_state,
    marked_sources,
    room_for_marks,
    state_place,
)
from penstock.wire.orders import Plan, Switches
from penstock.wire.reports import Restart

_SCRATCH = "scratch"


@dataclass(frozen=True, slots=True)
class Launcher:
    """What a flow reads and where it commits; `is_resumable` says that the checkpoint outlives the flow.

    `batch_ms` is how long a batch may last, `room` where state is committed, or why it is not. With
    `committing` commits are epoch marks inside it.
    """

    spark: SparkSession
    bridge: Bridge
    flow: str
    reading: Reading
    batch_ms: int
    checkpoint: str
    is_resumable: bool
    plan: Plan
    room: Room | NoRoom
    keep_commits: int
    drop_state: tuple[str, ...] = ()
    committing: Committing | None = None

    def launch(self, layout: Layout, switches: Switches, died: Sequence[Restart] | None = None) -> Committed:
        """Begin after the last commit, which is returned; refused if the flow lacks a source it knows.

        `died` are the workers whose death ended it before, None if it did not run before.
        """
        if self.committing is not None:
            return self._launch_marked(self.committing, layout, switches, died)
        known = committed(self.spark, self.checkpoint)
        self._check(known)
        graph = self.plan.graph
        place = state_place(
            self.room, self.checkpoint, graph, known.batch, self.keep_commits, self.drop_state
        )
        if place is not None:
            place = cautious(self.room, place, graph, known.batch, died)
        self._tell_workers(place)
        beginning = Beginning(self.reading, known.batch + 1, self.batch_ms, self.checkpoint)
        self.bridge.start(layout, switches, beginning)
        return known

    def _launch_marked(
        self,
        committing: Committing,
        layout: Layout,
        switches: Switches,
        died: Sequence[Restart] | None,
    ) -> Committed:
        """From the newest entry of the log. Spark has a checkpoint of its own for each attempt."""
        committing.end()
        room = room_for_marks(self.room, self.checkpoint)
        known = committed(self.spark, self.checkpoint)
        sources = marked_sources(room, self.checkpoint)
        self._check(known if sources is None else Committed(known.batch, sources))
        graph = self.plan.graph
        sinks = Sinks.of(graph)
        log, place = begin_marked(
            room, self.checkpoint, graph, known, self.keep_commits, self.drop_state, sinks
        )
        entry = log.entry
        self.reading.begin_at(entry.positions)
        if switches.exact:
            place = cautious(room, place, graph, entry.epoch - 1, died)
        self._tell_workers(place)
        Directory(self.spark, self.checkpoint).remove(_SCRATCH)
        scratch = f"{self.checkpoint}/{_SCRATCH}/{entry.attempt}"
        beginning = Beginning(self.reading, entry.epoch, self.batch_ms, scratch, entry.epoch)
        self.bridge.start(layout, switches, beginning)
        committing.begin(log, [task.name for task in graph.tasks], sinks)
        return Committed(entry.epoch - 1, entry.positions)

    def _tell_workers(self, place: Place | None) -> None:
        self.bridge.plan = cloudpickle.dumps(replace(self.plan, state=place))
        self.bridge.store = place.root if place is not None and place.is_remote else None

    def _check(self, known: Committed) -> None:
        check_sources(self.flow, self.checkpoint, known.sources, self.reading.starts)
        self.reading.follow(known.sources)

    def close(self, timeout_ms: int) -> bool:
        """End the run; False if some executor did not confirm that its workers are gone."""
        if self.committing is not None:
            self.committing.end()
        return self.bridge.close(timeout_ms)

    @property
    def commit_problem(self) -> Exception | None:
        """Why nothing more can be committed in this run, if that is so."""
        return None if self.committing is None else self.committing.problem

    @property
    def commits(self) -> CommitTotals | None:
        """How commits by epoch marks go; None where they are boundaries."""
        return None if self.committing is None else self.committing.totals

    def state(self, task: str) -> list[Kept]:
        """What a task keeps, as it was committed last."""
        return committed_state(self.spark, self.checkpoint, self.room, task)

    def slots(self) -> int:
        """The task slots that Spark has now."""
        return all_slots(self.spark)
