"""The thread of the driver that watches a running flow: collects reports, notes progress, sees the end."""

import threading
import time
from collections.abc import Callable

from penstock.observe.constraint_watch import ConstraintWatch
from penstock.observe.progress import Progress
from penstock.observe.refusals import RefusalNotices
from penstock.observe.reported import Metrics, Reported
from penstock.spark.bridge import Bridge, Seen
from penstock.spark.failure_words import is_users

_TICK_S = 0.1
_LAST_WORDS_S = 2.0


class Monitor(threading.Thread):
    """Runs until `over` is set.

    `on_ended` is called when the query has ended by itself or lost an executor, `on_exhausted` when all
    sources have run dry and everything is drained, `on_lost` with what was raised when Spark is gone, `tell`
    with what somebody should hear of.
    """

    def __init__(
        self,
        bridge: Bridge,
        reported: Reported,
        progress: Progress,
        metrics: Callable[[], Metrics],
        watch: ConstraintWatch,
        over: threading.Event,
        *,
        on_ended: Callable[[], None],
        on_exhausted: Callable[[], None],
        on_lost: Callable[[BaseException], None],
        tell: Callable[[str], None],
    ) -> None:
        super().__init__(name="penstock-monitor", daemon=True)
        self._bridge = bridge
        self._reported = reported
        self._progress = progress
        self._metrics = metrics
        self._watch = watch
        self._over = over
        self._on_ended = on_ended
        self._on_exhausted = on_exhausted
        self._on_lost = on_lost
        self._tell = tell
        self._refusals = RefusalNotices()

    def run(self) -> None:
        """Look ten times a second."""
        while not self._over.is_set():
            try:
                self._look()
            except BaseException as problem:  # noqa: BLE001 - a JVM that goes raises many things, and whoever
                # is told of something may even call exit(): without this thread a flow would never be over.
                if not self._over.is_set():
                    self._on_lost(problem)
                return
            self._over.wait(_TICK_S)

    def _look(self) -> None:
        seen = self.collect()
        self._watch.look()
        for notice in self._refusals.of(self._reported.refused()):
            self._tell(notice)
        if self._progress.is_due():
            self._progress.note(self._bridge.batch(), self._metrics())
            self._reported.note_slots(self._bridge.slots())
            self._bridge.replace_silent_executors()
        if seen.lost:
            self._bridge.end_query()  # Spark would find out by itself, seconds later
        if not self._bridge.is_active:
            self._on_ended()
        elif seen.exhausted:
            self._on_exhausted()

    def collect(self) -> Seen:
        """Take in what the workers said since the last time."""
        seen = self._bridge.look()
        self._reported.add(seen.reports)
        return seen

    def await_last_words(self) -> None:
        """A failure is told by the task that failed and by Spark, and either may come first.

        Only one of the user's code is told by both.
        """
        told = is_users(str(self._bridge.error()))
        deadline = time.monotonic() + (_LAST_WORDS_S if told else 0.0)
        self.collect()
        while self._reported.failure is None and time.monotonic() < deadline:
            time.sleep(_TICK_S / 2)
            self.collect()
