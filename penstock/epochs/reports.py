"""What is reported of epochs, and when it makes an entry of the log.

Every stage (a replica of a task) reports each epoch once its mark has passed: whether it is valid there, and
what belongs to it. A void epoch gets no entry; what was reported of it belongs to the next one.
"""

from collections.abc import Collection, Sequence
from typing import Final, Generic, Protocol, TypeVar

import msgspec

from penstock.epochs.entries import Entry, Handle, StateFile
from penstock.epochs.state_files import without_superseded
from penstock.wire.orders import Position

VOIDS_BEFORE_QUIET: Final = 3
"""After so many void epochs in a row, sources wait for the end of one."""

Stage = tuple[str, int]
"""A task, and the number of its replica."""


class Marked(msgspec.Struct, frozen=True, omit_defaults=True):
    """What a worker says of an epoch: where a source stands, or what a task has written or prepared.

    `replicas` is among how many the state is divided.
    """

    positions: dict[str, Position] | None = None
    files: tuple[StateFile, ...] = ()
    replicas: int | None = None
    handles: tuple[Handle, ...] = ()


class Done(msgspec.Struct, frozen=True):
    """A stage has written down an epoch. One that is `last` stands for all later ones of its batch."""

    task: str
    replica: int
    pool: int
    epoch: int
    valid: bool = True
    last: bool = False
    said: Marked = Marked()


class Report(Protocol):
    """The least that must be said."""

    @property
    def epoch(self) -> int: ...
    @property
    def valid(self) -> bool: ...
    @property
    def last(self) -> bool: ...


Told = TypeVar("Told", bound=Report)


class Heard(Generic[Told]):
    """The reports of one attempt, in whatever order and number they come."""

    def __init__(self) -> None:
        self._of: dict[Stage, dict[int, Told]] = {}

    def hear(self, stage: Stage, report: Told) -> None:
        """One of a stage, perhaps not for the first time."""
        self._of.setdefault(stage, {})[report.epoch] = report

    def epochs(self, stage: Stage) -> set[int]:
        """Those that a stage has reported."""
        return {*self._of.get(stage, {})}

    def of(self, stage: Stage, epoch: int) -> Told | None:
        """What a stage says of an epoch; a last report speaks for it, too."""
        known = self._of.get(stage, {})
        if epoch in known:
            return known[epoch]
        return next((told for told in known.values() if told.last and told.epoch <= epoch), None)

    def verdict(self, stages: Collection[Stage], epoch: int) -> bool | None:
        """Whether an epoch is valid; None while reports are missing."""
        told = [self.of(stage, epoch) for stage in stages]
        if any(report is None for report in told):
            return None
        return all(report is not None and report.valid for report in told)

    def between(self, since: int, epoch: int) -> list[Told]:
        """All that was reported of the epochs after `since` up to this one: void ones are among them."""
        return [
            report
            for reports in self._of.values()
            for number, report in sorted(reports.items())
            if since < number <= epoch
        ]

    def forget(self, epoch: int, *, batch_is_over: bool) -> None:
        """An entry has all up to this epoch. Last reports count for the rest of their batch."""
        for stage, reports in self._of.items():
            self._of[stage] = {
                number: report
                for number, report in reports.items()
                if number > epoch or (report.last and not batch_is_over)
            }


class Epochs:
    """Which epochs of a running flow can be committed, by what its stages report; `tasks` are all of it."""

    def __init__(self, tasks: Sequence[str], newest: Entry) -> None:
        self._tasks = tasks
        self._heard: Heard[Done] = Heard()
        self._pools: dict[str, int] = {}
        self._voids = 0
        self.newest = newest
        """The entry of the last commit."""

    @property
    def wants_quiet(self) -> bool:
        """Whether the next epoch is to be one in which sources wait."""
        return self._voids >= VOIDS_BEFORE_QUIET

    def hear(self, done: Done) -> None:
        """A report."""
        self._pools[done.task] = done.pool
        self._heard.hear((done.task, done.replica), done)

    def verdict(self, epoch: int) -> bool | None:
        """Whether an epoch is valid; None while reports are missing."""
        if any(task not in self._pools for task in self._tasks):
            return None
        return self._heard.verdict(self._stages(), epoch)

    def missing(self, epoch: int) -> int:
        """How many reports of an epoch are still to come, at least one."""
        if any(task not in self._pools for task in self._tasks):
            return 1
        return max(1, sum(self._heard.of(stage, epoch) is None for stage in self._stages()))

    def _stages(self) -> list[Stage]:
        """The whole pools, as their replicas tell their size."""
        return [(task, replica) for task in self._tasks for replica in range(self._pools[task])]

    def void(self) -> None:
        """An epoch is given up."""
        self._voids += 1

    def entry(self, epoch: int) -> Entry:
        """What is to be appended for a valid epoch: all that was reported since the entry before it."""
        before = self.newest
        positions = {source: dict(splits) for source, splits in before.positions.items()}
        for stage in self._stages():
            told = self._heard.of(stage, epoch)
            assert told is not None, "a valid epoch was reported by all"
            if told.said.positions is not None:
                positions.setdefault(stage[0], {}).update(told.said.positions)
        since = self._heard.between(before.epoch, epoch)
        written = [file for done in since for file in done.said.files]
        prepared = [handle for done in since for handle in done.said.handles]
        divided = {done.task: done.said.replicas for done in since if done.said.replicas is not None}
        pools = before.pools | divided
        return msgspec.structs.replace(
            before,
            kind="commit",
            epoch=epoch,
            positions=positions,
            files=without_superseded([*before.files, *written], pools),
            handles=(*before.handles, *prepared),
            pools=pools,
        )

    def committed(self, entry: Entry, *, batch_is_over: bool) -> None:
        """The entry is in the log."""
        self.newest = entry
        self._voids = 0
        self._heard.forget(entry.epoch, batch_is_over=batch_is_over)
        if batch_is_over:
            self._pools.clear()

    def answered(self) -> None:
        """All that the newest entry names is seen: no other has to name it."""
        self.newest = msgspec.structs.replace(self.newest, handles=())
