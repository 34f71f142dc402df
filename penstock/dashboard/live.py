"""A flow that runs as the dashboard shows it: looked at once a second, whether somebody watches or not."""

import logging
import threading
import time
from collections import deque
from collections.abc import Callable, Sequence
from typing import Final, Protocol

import msgspec

from penstock.control.decision_log import Entry
from penstock.control.loop import Cycle
from penstock.dashboard.timeline import Timeline
from penstock.dashboard.told import Event, EventKind, Now, Told, is_loud, now_of, told_of
from penstock.observe.progress import Status
from penstock.observe.reported import Metrics
from penstock.observe.view import View
from penstock.operate.commands import Commands
from penstock.operate.ports import Deciding, Operated
from penstock.operate.protocol import Answer, AskStatus, FlowNow, Set

EVERY_S: Final = 1.0
KEPT: Final = 3600
"""An hour of seconds; a recording holds more."""
EVENTS_KEPT: Final = 500
_END_S: Final = 5.0
_log = logging.getLogger("penstock.dashboard")


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


class Watching(Deciding, Protocol):
    """Who decides about a flow, with what it saw."""

    def cycles(self) -> list[Cycle]:
        """What was observed and decided, oldest first."""
        ...


class Watched(Operated, Protocol):
    """The handle of a running flow, as far as the dashboard needs it."""

    @property
    def control(self) -> Watching | None:
        """Who decides about it."""
        ...

    def view(self, *, with_cpu: bool = True) -> View:
        """To look at intervals of one's own."""
        ...

    def decisions(self) -> list[Entry]:
        """What its policy decided."""
        ...

    def by_hand(self) -> list[Entry]:
        """What people decided."""
        ...

    def outages(self) -> Sequence[Stopped]:
        """When it did not run."""
        ...


class LiveFlow:
    """Looks at a flow until it is closed; the flow goes on whatever happens here."""

    def __init__(self, job: Watched, clock: Callable[[], float] = time.monotonic) -> None:
        self.flow = job.layout.graph.name
        self.timeline = Timeline(kept=KEPT)
        self._job = job
        self._clock = clock
        self._view = job.view(with_cpu=False)
        self._commands = Commands(job, by="dashboard")
        self._noted = _Noted()
        self._events: deque[Event] = deque(maxlen=EVENTS_KEPT)
        self._happened = 0
        self._now: Now | None = None
        self._since_s = clock()
        self._closed = threading.Event()
        self.look()
        self._thread = threading.Thread(target=self._watch, name="penstock-watching", daemon=True)
        self._thread.start()

    @property
    def policy(self) -> str | None:
        """Who decides, None if nobody does."""
        control = self._job.control
        return None if control is None else control.status().policy

    @property
    def steer(self) -> Callable[[Set], Answer]:
        """Changes it at once; all or nothing."""
        return self._commands.answer

    def now(self) -> Now | None:
        """As it was a second ago at the most."""
        return self._now

    def decisions(self, before_s: float, count: int, *, changes: bool) -> list[Told]:
        """See `Shown`."""
        control = self._job.control
        seen = {} if control is None else {cycle.number: cycle.snapshot for cycle in control.cycles()}
        entries = sorted([*self._job.decisions(), *self._job.by_hand()], key=lambda entry: entry.at_s)
        found: list[Told] = []
        for entry in reversed(entries):
            told = told_of(entry, None if entry.by else seen.get(entry.number))
            if entry.at_s <= before_s and (is_loud(told) or not changes):
                found.append(told)
            if len(found) == count:
                break
        return found

    def events(self) -> list[Event]:
        """See `Shown`."""
        return list(self._events)

    def close(self) -> None:
        """Look no more."""
        self._closed.set()
        self._thread.join(_END_S)

    def look(self) -> None:
        """An interval ends now; `close` and tests need no other."""
        passed_s = self._clock() - self._since_s
        job = self._job
        if passed_s > 0:
            self._since_s += passed_s
            snapshot = self._view.snapshot(passed_s)
            cycles = [] if job.control is None else job.control.cycles()
            planned = cycles[-1].decision.parallelism if cycles else {}
            if cycles:  # CPU is measured by those who need it for decisions, and dear to measure
                seen = cycles[-1].snapshot
                snapshot = msgspec.structs.replace(
                    snapshot, cores_used=seen.cores_used, cores_leased=seen.cores_leased
                )
            self.timeline.add(snapshot, at_s=time.time(), planned=planned)
        news = self._noted.news(job.status, job.metrics(), _batch(job), job.outages())
        self._events.extend(news)
        self._happened += len(news)
        answer = self._commands.answer(AskStatus())
        if isinstance(answer, FlowNow):
            self._now = now_of(answer, None if job.control is None else job.control.mode, self._marks())

    def _marks(self) -> str:
        """Another one as soon as there is something new in the log or among the events."""
        entries, by_hand = self._job.decisions(), self._job.by_hand()
        last = entries[-1] if entries else None
        state = None if last is None else (last.number, last.effect is None, last.observed is None)
        return f"{state} {len(by_hand)} {by_hand[-1].at_s if by_hand else 0} {self._happened}"

    def _watch(self) -> None:
        is_told = False
        while not self._closed.wait(EVERY_S):
            try:
                self.look()
            except Exception:  # noqa: BLE001 - whatever it is, the flow goes on
                if not is_told and not self._closed.is_set():
                    _log.warning("flow %s: the dashboard could not look at it", self.flow, exc_info=True)
                is_told = True


class _Noted:
    """What was known at the last look; what is new becomes events."""

    def __init__(self) -> None:
        self._state: str | None = None
        self._batch: int | None = None
        self._outages = 0
        self._counts: dict[tuple[str, str], int] = {}

    def news(
        self, status: Status, metrics: Metrics, batch: int | None, outages: Sequence[Stopped]
    ) -> list[Event]:
        """Since the last call; the first tells the state only."""
        at_s, found = time.time(), list[Event]()
        if status.state != self._state:
            kind: EventKind = "failure" if status.state == "failed" else "run"
            text = f"the flow is {status.state}"
            found.append(Event(at_s=at_s, kind=kind, text=text, detail=status.message))
            self._state = status.state
        if batch is not None and self._batch is not None and batch > self._batch:
            found.append(Event(at_s=at_s, kind="commit", text=f"batch {batch - 1} is committed"))
        self._batch = batch
        for outage in outages[self._outages :]:
            down_s = outage.ended_s - outage.began_s
            words = f"started again after {down_s:.1f} s, {outage.replayed:,} items replayed"
            found.append(Event(at_s=at_s, kind="restart", text=words, detail=outage.why))
        self._outages = len(outages)
        return [*found, *self._failures(metrics, at_s)]

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


def _batch(job: Watched) -> int | None:
    """The one that runs."""
    progress = job.recent_progress
    return progress[-1]["batch"] if progress else None
