"""A flow that runs as the dashboard shows it: looked at once a second, whether somebody watches or not."""

import logging
import threading
import time
from collections import deque
from collections.abc import Callable, Sequence
from typing import Final, Protocol

import msgspec

from penstock.control.decision_log import Entry
from penstock.control.events import Event, Noted, Stopped
from penstock.control.loop import Cycle
from penstock.dashboard.timeline import Timeline
from penstock.dashboard.told import Now, Told, is_loud, now_of, told_of
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
        self._noted = Noted()
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
        news = self._noted.news(job)
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
