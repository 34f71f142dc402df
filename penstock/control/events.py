"""What happens to a flow besides decisions: commits, failures, restarts, and how it began and ended."""

import time
from collections.abc import Sequence
from typing import Any, Literal, Protocol

import msgspec

from penstock.observe.progress import Status
from penstock.observe.reported import CommitTotals, Metrics

EventKind = Literal["commit", "restart", "failure", "run"]


class Event(msgspec.Struct, frozen=True, kw_only=True):
    """A commit, a failure or a restart; `detail` may show items and is told to those who have the token."""

    at_s: float
    kind: EventKind
    text: str
    detail: str | None = None


class Stopped(Protocol):
    """A time in which the flow did not run, by the monotonic clock."""

    @property
    def why(self) -> str:
        """What ended it."""
        ...

    @property
    def began_s(self) -> float:
        """When it stopped."""
        ...

    @property
    def ended_s(self) -> float:
        """When it ran again."""
        ...

    @property
    def replayed(self) -> int:
        """Items that were read again."""
        ...


class Eventful(Protocol):
    """The handle of a running flow, as far as events are found in it."""

    @property
    def status(self) -> Status:
        """What it is doing."""
        ...

    @property
    def recent_progress(self) -> list[dict[str, Any]]:
        """One entry per second."""
        ...

    def metrics(self) -> Metrics:
        """Totals of every task."""
        ...

    def outages(self) -> Sequence[Stopped]:
        """When it did not run."""
        ...


class Noted:
    """What was known at the last look; what is new becomes events."""

    def __init__(self) -> None:
        self._state: str | None = None
        self._batch: int | None = None
        self._outages = 0
        self._counts: dict[tuple[str, str], int] = {}
        self._voids = 0

    def news(self, flow: Eventful) -> list[Event]:
        """Since the last call; the first tells the state only."""
        at_s, status = time.time(), flow.status
        metrics = flow.metrics()
        commits = metrics.commits
        found = self._commits(flow.recent_progress) if commits is None else self._void(commits, at_s)
        outages = flow.outages()
        for outage in outages[self._outages :]:
            down_s = outage.ended_s - outage.began_s
            at = "" if commits is None or commits.epoch is None else f" at epoch {commits.epoch:,}"
            words = f"started again{at} after {down_s:.1f} s, {outage.replayed:,} items replayed"
            found.append(Event(at_s=at_s, kind="restart", text=words, detail=outage.why))
        self._outages = len(outages)
        found.extend(self._failures(metrics, at_s))
        if status.state != self._state:
            kind: EventKind = "failure" if status.state == "failed" else "run"
            text = f"the flow is {status.state}"
            found.append(Event(at_s=at_s, kind=kind, text=text, detail=status.message))
            self._state = status.state
        return found

    def _commits(self, progress: list[dict[str, Any]]) -> list[Event]:
        """A batch is committed before the next one begins; entries tell when that was, to a second."""
        found = []
        for entry in progress:
            batch = entry["batch"]
            if self._batch is not None and batch > max(self._batch, 0):
                text = f"batch {batch - 1} is committed"
                found.append(Event(at_s=entry["time_s"], kind="commit", text=text))
            if self._batch is None or batch > self._batch:
                self._batch = batch
        return found

    def _void(self, commits: CommitTotals, at_s: float) -> list[Event]:
        """Commits by epoch marks come each second, and are told by snapshots; those that did not, here."""
        void, self._voids = commits.voids - self._voids, commits.voids
        if void <= 0:
            return []
        words = f"{void:,} epochs void: more waited for a mark than a task may store"
        return [Event(at_s=at_s, kind="commit", text=words)]

    def _failures(self, metrics: Metrics, at_s: float) -> list[Event]:
        found = []
        for task, counted in metrics.tasks.items():
            counts = {
                "worker processes died and were replaced": counted.restarts,
                "items skipped": counted.skipped,
                "items became dead letters": counted.dead_lettered,
            }
            for words, count in counts.items():
                before = self._counts.get((task, words), 0)
                self._counts[task, words] = count
                if count > before:
                    found.append(Event(at_s=at_s, kind="failure", text=f"{task}: {count - before:,} {words}"))
        return found
