"""The driver: orders epochs, collects reports, appends entries, commits."""

from dataclasses import replace
from typing import TYPE_CHECKING

import msgspec

from penstock.epochs.entries import Entry, Handle, StateFile
from penstock.epochs.log import Log, newest_index, read_entry
from penstock.epochs.reports import VOIDS_BEFORE_QUIET, Heard
from penstock.epochs.retention import collect
from penstock.epochs.state_files import compact, with_base
from penstock.epochs.tables import moves
from penstock.wire.orders import Position
from tests.epochs.model.graph import GROUPS
from tests.epochs.model.messages import Done, Order, StageKey, Tables

if TYPE_CHECKING:
    from tests.epochs.model.world import World

KEPT_ENTRIES = 2


class Driver:
    """One driver's memory; a driver that is replaced keeps it, and may still try to append."""

    def __init__(self, world: "World") -> None:
        self.world = world
        self.log = self._begin()
        self.epoch = self.log.entry.epoch
        self.begin_attempt()

    def _begin(self) -> Log:
        storage = self.world.storage
        if self.world.rules.fence:
            return Log.begin(storage)
        newest = newest_index(storage)
        if newest is None:
            return Log.begin(storage)
        entry = read_entry(storage, newest)
        assert entry is not None
        return Log(storage, newest, msgspec.structs.replace(entry, attempt=entry.attempt + 1))

    def begin_attempt(self) -> None:
        """From the newest entry: nothing that was said before counts."""
        self.open: Order | None = None
        self.reports: Heard[Done] = Heard()
        self.unanswered: set[StageKey] = set()
        self.handles: tuple[Handle, ...] = ()
        self.voids = 0
        self.base: StateFile | None = None
        self.committed_early = False
        self.tables: Tables = {}
        self.moved: dict[str, frozenset[int]] = {}
        self.wants_last = self.is_last_committed = False

    @property
    def attempt(self) -> int:
        return self.log.entry.attempt

    def can_order(self) -> bool:
        return self.open is None and not self.is_last_committed

    def order(self, tables: Tables | None = None) -> Order:
        """The next epoch; with other tables if groups are to move."""
        self.epoch += 1
        quiet = self.voids >= VOIDS_BEFORE_QUIET and self.world.rules.quiet_after_voids
        if not self.world.rules.moves_until_committed:
            self.moved = {}
        for task, table in (tables or {}).items():
            now = {group for move in moves(self.tables[task], table) for group in move.groups}
            self.moved[task] = self.moved.get(task, frozenset()) | now
        self.tables = tables or self.tables
        self.open = Order(self.attempt, self.epoch, self.tables, dict(self.moved), quiet, self.wants_last)
        return self.open

    def hear(self, stage: StageKey, attempt: int, reports: dict[int, Done]) -> None:
        """Reports, in whatever order and number they come."""
        if attempt == self.attempt or not self.world.rules.attempt_in_reports:
            for report in reports.values():
                self.reports.hear(stage, report)

    def verdict(self) -> bool | None:
        """Whether the open epoch is valid; None while reports are missing."""
        if self.open is None:
            return None
        return self.reports.verdict(self.world.keys, self.open.epoch)

    def void(self) -> None:
        """Give the open epoch up. Its files and handles stay in the reports."""
        assert self.open is not None
        self.open = None
        self.voids += 1

    def entry(self) -> Entry:
        """What is to be appended: all that was reported since the entry before, and what came before it."""
        assert self.open is not None
        before = self.log.entry
        epoch = self.open.epoch
        since = before.epoch if self.world.rules.reports_are_cumulative else epoch - 1
        done = self.reports.between(since, epoch)
        positions: dict[str, dict[str, Position]] = {}
        for task in self.world.graph.of_kind("source"):
            told = [self.reports.of((task.name, split), epoch) for split in range(task.pool)]
            reached = [0 if report is None else report.position or 0 for report in told]
            positions[task.name] = {str(n): Position(at, at) for n, at in enumerate(reached)}
        files = tuple(file for report in done for file in report.files)
        handles = tuple(handle for report in done for handle in report.handles)
        older = before.files if self.base is None else with_base(before.files, self.base)
        return Entry(
            kind="commit",
            attempt=self.attempt,
            epoch=epoch,
            positions=positions,
            files=older + files,
            handles=(self.handles if self.world.rules.handles_until_answered else ()) + handles,
            tables=dict(self.open.tables),
            pools=dict(self.world.pools),
        )

    def commit_early(self) -> None:
        """What must not be done: COMMIT before the entry is in the log."""
        for handle in self.entry().handles:
            self.world.outside.commit(handle)
        self.committed_early = True

    def append(self) -> None:
        """The entry makes it true; then COMMIT, until all have answered."""
        entry = self.entry()
        self.log.append(entry)
        self.base, self.voids, self.committed_early = None, 0, False
        self.handles = entry.handles
        self.unanswered = set(self.world.keys)
        assert self.open is not None
        self.is_last_committed = self.open.last
        self.moved = {}
        self.open = None
        collect(self.log, keep=KEPT_ENTRIES)

    def answer(self, stage: StageKey) -> None:
        """A stage has committed all up to the newest entry."""
        self.unanswered.discard(stage)
        epoch = self.log.entry.epoch
        self.handles = tuple(
            handle
            for handle in self.handles
            if (handle.task, handle.replica) != stage
            or handle.attempt != self.attempt
            or handle.epoch > epoch
        )

    def compact(self) -> None:
        """A base from the files of the newest entry, outside of the workers; the next entry names it."""
        for task in self.world.graph.of_kind("keyed"):
            if self.base is None and self.log.entry.files:
                files = self.log.entry.files
                if any(file.kind == "changes" and file.task == task.name for file in files):
                    self.base = compact(self.world.storage, files, task.name, range(GROUPS), self.attempt)

    def release(self, order: Order | None) -> bool:
        """Whether sources that wait for the end of a quiet epoch may read on."""
        return order is not None and not order.last and (self.open is None or self.open.epoch != order.epoch)

    def put_to_sleep(self) -> "Driver":
        """This driver as it is now, asleep."""
        asleep = object.__new__(Driver)
        asleep.__dict__.update(self.__dict__)
        asleep.log = Log(self.log.storage, self.log.index, self.log.entry)
        asleep.open = None if self.open is None else replace(self.open)
        return asleep
