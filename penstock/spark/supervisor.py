"""Keeps a flow running until it is to end: starts it again at its last commit, drains it, leaves nothing."""

import contextlib
import logging
import threading
import time
from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import replace

from py4j.protocol import Py4JJavaError
from pyspark.errors import PySparkException

from penstock.durations import format_ms
from penstock.epochs.errors import SupersededError
from penstock.epochs.looking import Kept
from penstock.flow.errors import FlowError, JobFailed
from penstock.flow.layers import Layout
from penstock.observe.constraint_watch import ConstraintWatch
from penstock.observe.progress import Progress, State
from penstock.observe.reported import CommitTotals, Metrics, Reported
from penstock.observe.view import View
from penstock.spark.boundaries import Boundaries
from penstock.spark.checkpoint import Committed
from penstock.spark.drained import Drained
from penstock.spark.failure_words import failure_words, first_words, is_users
from penstock.spark.holder import Holder
from penstock.spark.launcher import Launcher
from penstock.spark.monitor import Monitor
from penstock.spark.patience import Patience
from penstock.spark.restarts import Outage, Restarts
from penstock.spark.slots import Claim
from penstock.spark.switchboard import Switchboard
from penstock.wire.orders import Switches
from penstock.wire.reports import Restart

_CLOSE_MS = 10_000
_FIND_OUT_S = 10.0
_LOOK_S = 0.05
_LOOK_FOR_SLOTS_S = 0.2
_log = logging.getLogger("penstock")


class Supervisor:
    """The life of a flow that was launched. `kept` is closed when the flow is over.

    Whoever drains, abandons or restarts it holds `board.turning`; `state` says who is at it.
    """

    def __init__(
        self,
        layout: Layout,
        switches: Switches,
        launcher: Launcher,
        claim: Claim,
        restarts: Restarts,
        started_at: Committed,
        kept: ExitStack,
        on_notice: Callable[[str], None] | None,
    ) -> None:
        self.bridge = launcher.bridge
        self.boundaries = Boundaries(self.bridge)
        self.board = Switchboard(
            layout, switches, self.bridge, self.boundaries, claim, self.check_running, launcher.committing
        )
        self.reported = Reported()
        self.progress = Progress()
        self.watch = ConstraintWatch(View(self.reported, self.present, None))
        self.restarts = restarts
        self.kept = kept
        self.state: State = "running"
        self.error: JobFailed | None = None
        self.drained: Drained | None = None
        self.over = threading.Event()
        self._launcher = launcher
        self._claim = claim
        self._started_at = started_at
        self._on_notice = on_notice
        self._patience = Patience()
        self._moving = threading.Lock()
        self._taken: JobFailed | None = None
        self._told_of_shuffle: str | None = None
        self._monitor = Monitor(
            self.bridge,
            self.reported,
            self.progress,
            self.metrics,
            self.watch,
            self.over,
            on_ended=self._ended_by_itself,
            on_exhausted=self._ran_dry,
            on_lost=lambda problem: self._conclude("failed", JobFailed(f"Spark is gone: {problem}")),
            tell=self.tell,
        )
        self._monitor.start()

    @property
    def name(self) -> str:
        """Of the flow."""
        return self.board.layout.graph.name

    def when_over(self, callback: Callable[[], None]) -> None:
        """Call it when the flow is over, also if that is now; it may be called twice then."""
        self.kept.callback(callback)
        if self.state in ("stopped", "failed"):
            callback()

    def present(self) -> tuple[Layout, Switches]:
        """Where everything is placed, and how the switches are set, now."""
        return self.board.layout, self.board.switches

    def splits(self) -> dict[str, int]:
        """How many there are to be read of each source, those among them that were added since."""
        return {source: len(starts) for source, starts in self._launcher.reading.starts.items()}

    def committed_state(self, task: str) -> list[Kept]:
        """What a task keeps, as it was committed last."""
        self.board.layout.graph.task(task)
        return self._launcher.state(task)

    def metrics(self) -> Metrics:
        """Totals of every task, of the sinks' latency, and of the restarts."""
        layout = self.board.layout
        pools = {task.name: layout.unit_of(task.name).pool for task in layout.graph.tasks}
        metrics = self.reported.metrics(self.board.switches.active, pools)
        for source in self.board.switches.paused:
            metrics.tasks[source].paused = True
        restarts = self.restarts
        return replace(
            metrics,
            restarts=restarts.count,
            down_s=restarts.down_s,
            replayed=restarts.replayed,
            commits=self.commits(),
        )

    def commits(self) -> CommitTotals | None:
        """How commits by epoch marks go; every start of the flow but the first went back to one."""
        found = self._launcher.commits
        return None if found is None else replace(found, rollbacks=self.restarts.count)

    def check_running(self) -> None:
        """Raise why it does not run, if it does not."""
        deadline_s = time.monotonic() + _FIND_OUT_S
        while self.state == "running" and not self.bridge.is_active and time.monotonic() < deadline_s:
            self.over.wait(_LOOK_S)  # it has just ended; the monitor finds out why, and may start it again
        if self.error is not None:
            raise self.error
        if self.state != "running":
            raise FlowError(f'flow "{self.name}" is {self.state}')

    def stop(self, timeout_s: float) -> Drained | None:
        """Drain it within that time, started again first if Spark has just ended it; raises what failed."""
        if self.over.is_set():
            return self.drained
        began_s = time.monotonic()
        self._patience.end_in(timeout_s)
        while not self.over.is_set():
            with self.board.turning:
                if self._becomes("draining", after="running"):
                    self._drain(began_s, timeout_s)
            self.over.wait(_LOOK_S)  # somebody else may be ending it, or starting it again
        if self.error is not None:
            raise self.error
        return self.drained

    def abandon(self) -> None:
        """End it at once."""
        self._patience.end_in(0)
        with self.board.turning:
            if self._becomes("draining", after="running"):
                self._finish("stopped", None)
        self.over.wait()

    def place_taken(self, by: Holder) -> None:
        """Another driver holds the checkpoint: nothing may be committed any more."""
        place = self._launcher.checkpoint
        self._taken = JobFailed(f'flow "{self.name}": its checkpoint {place} was taken over by {by}')
        self._patience.end_in(0)
        self._becomes("draining", after="running")
        with contextlib.suppress(Exception):
            self.bridge.end_query()
        with self.board.turning:
            self._finish("failed", self._taken)

    def _becomes(self, state: State, *, after: State) -> bool:
        """Threads that want to end the flow, or start it again, must not both succeed."""
        with self._moving:
            if self.state != after:
                return False
            self.state = state
            return True

    def _drain(self, began_s: float, timeout_s: float) -> None:
        """Until everything is committed; what Spark ends meanwhile is started again, and drained then."""
        before, until_s = self._processed(), began_s + timeout_s
        while not self.boundaries.hold(until_s - time.monotonic(), closing=True):
            if self.bridge.is_active:
                self._finish("failed", self._not_drained(timeout_s))
                return
            why = self._why_ended()
            if self._is_users_fault():
                self._finish("failed", JobFailed(why))
                return
            self.state, read = "restarting", self._read_once()
            if not self._started_again(why):
                return
            self._await_read(read, until_s)
            self.state = "draining"
        self._finish_drained(began_s, before)

    def _await_read(self, items: int, until_s: float) -> None:
        """What was read before an outage is part of what is to be drained, unless a source is paused."""
        while (
            not self.board.switches.paused
            and self._read_once() < items
            and self.bridge.is_active
            and not self.bridge.is_exhausted()
        ):
            if time.monotonic() > until_s:
                return
            self.over.wait(_LOOK_S)

    def _ran_dry(self) -> None:
        if not self.board.turning.acquire(blocking=False):
            return
        try:
            if self._becomes("draining", after="running"):
                self._finish_drained(time.monotonic(), self._processed())
        finally:
            self.board.turning.release()

    def _ended_by_itself(self) -> None:
        """In the monitor's thread: the query is over, and nobody asked for that."""
        if self.state != "running":
            return
        why = self._why_ended()
        if self._is_users_fault():
            self._finish("failed", JobFailed(why))
        elif self._becomes("restarting", after="running"):  # a boundary that waits for this query gives up
            with self.board.turning:
                if self._started_again(why):
                    self.state = "running"

    def _started_again(self, why: str) -> bool:
        """Until the flow runs again; False if that is not to be, and it is over."""
        problem = self._start_again(why)
        if problem is not None:
            error = JobFailed(f"{why}; {problem}; {self._fate('what came after its last commit')}")
            self._finish("failed", self._taken or error)
        return problem is None

    def _start_again(self, why: str) -> str | None:
        """What is in the way, or None if the flow runs."""
        began_s, died = time.monotonic(), list[Restart]()
        self.tell(f"it is started again at its last commit: {why}")
        while (wait_s := self.restarts.wait_s()) is not None:
            self._launcher.close(_CLOSE_MS)
            with contextlib.suppress(Py4JJavaError):
                self._monitor.collect()
            died += self.reported.take_died()
            self.reported.all_gone()
            if not self._patience.wait(wait_s) or not self._await_slots():
                return "it was stopped before it could be started again"
            self.restarts.tried()
            self.board.begin_again()
            try:
                known = self._launcher.launch(self.board.layout, self.board.switches, died)
            except (FlowError, Py4JJavaError, PySparkException) as problem:
                self.tell(f"it could not be started again: {first_words(str(problem))}")
                continue
            committed = known.items - self._started_at.items
            outage = Outage(why, began_s, time.monotonic(), max(0, self._read_once() - committed))
            self.restarts.over(outage)
            took_s = outage.ended_s - began_s
            self.tell(f"it runs again after {took_s:.1f} s, {outage.replayed:,} items are replayed")
            self.tell_of_the_shuffle()
            return None
        return self.restarts.too_many()

    def _await_slots(self) -> bool:
        """Wait until there is room for all layers; False if the flow is to stop meanwhile."""
        needed, told = self.board.layout.slots, False
        while (found := self._launcher.slots() - self._claim.others) < needed:
            if not told:
                self.tell(f"it waits for task slots: it needs {needed}, and Spark has {found}")
                told = True
            if not self._patience.wait(_LOOK_FOR_SLOTS_S):
                return False
        return True

    def _items_in(self, *, sources: bool) -> dict[str, int]:
        tasks = self.reported.metrics(self.board.switches.active, self.board.switches.active).tasks
        wanted = [task.name for task in self.board.layout.graph.tasks if (task.kind == "source") == sources]
        return {name: tasks[name].items_in for name in wanted}

    def _processed(self) -> dict[str, int]:
        """By each task, as far as its workers have reported."""
        return self._items_in(sources=False)

    def _read_once(self) -> int:
        """Items that sources have read, each counted once, as far as their workers have reported."""
        return sum(self._items_in(sources=True).values()) - self.restarts.replayed

    def tell_of_the_shuffle(self) -> None:
        """That it is Spark's own where it was not chosen, once."""
        why = self.bridge.shuffle_problem()
        if why is not None and why != self._told_of_shuffle:
            self._told_of_shuffle = why
            self.tell(f"Penstock's shuffle cannot be used, Spark's own is: {why}")

    def tell(self, notice: str) -> None:
        """Somebody must hear of it: the logger, and whoever asked for notices."""
        _log.warning("flow %s: %s", self.name, notice)
        if self._on_notice is None:
            return
        try:
            self._on_notice(notice)
        except Exception:  # noqa: BLE001 - users' code may raise anything, and the flow goes on
            _log.exception("flow %s: on_notice raised", self.name)

    def _is_users_fault(self) -> bool:
        if isinstance(self._launcher.commit_problem, SupersededError):
            return True
        failure = self.reported.failure
        return is_users(str(self.bridge.error())) if failure is None else not failure.may_pass

    def _why_ended(self) -> str:
        self._monitor.await_last_words()
        if (problem := self._launcher.commit_problem) is not None:
            place = self._launcher.checkpoint
            return f'flow "{self.name}": nothing can be committed in {place}: {problem}'
        lost = self.bridge.lost_executors()
        if lost and self.reported.failure is None:
            return f'flow "{self.name}": {lost}'
        return failure_words(self.name, self.reported.failure, self.bridge.error(), self._launcher.checkpoint)

    def _last_commit(self, batch: int) -> int | None:
        """The number of an epoch, or of that batch where commits are boundaries."""
        if (commits := self._launcher.commits) is not None:
            return commits.epoch
        return None if batch < 0 else batch

    def _not_drained(self, timeout_s: float) -> JobFailed:
        fate = self._fate("what came after its last commit")
        within = format_ms(timeout_s * 1000)
        return JobFailed(f'flow "{self.name}" was not drained within {within} and was stopped: {fate}')

    def _fate(self, what: str) -> str:
        """What becomes of what was not committed."""
        if self._launcher.is_resumable:
            return f"{what} is not committed, a start on the same checkpoint replays it"
        return f"{what} is not committed, and without a checkpoint nothing replays it"

    def _finish_drained(self, began_s: float, before: dict[str, int]) -> None:
        batch = self.bridge.batch()
        self._leave()
        items = {name: count - before[name] for name, count in self._processed().items()}
        self.drained = Drained(self._last_commit(batch), items, time.monotonic() - began_s)
        self._conclude("stopped", None)

    def _finish(self, state: State, error: JobFailed | None) -> None:
        if not self.over.is_set():
            self._leave()
            self._conclude(state, error)

    def _leave(self) -> None:
        with contextlib.suppress(Exception):
            self.bridge.end_query()
        if not self._launcher.close(_CLOSE_MS):
            _log.warning("flow %s: an executor did not confirm that its workers are gone", self.name)
        self._monitor.collect()  # the last words of all workers

    def _conclude(self, state: State, error: JobFailed | None) -> None:
        with self._moving:
            if self.state in ("stopped", "failed"):
                return
            self.error, self.state = error, state
        _log.info("flow %s: is %s%s", self.name, state, "" if self.drained is None else f", {self.drained}")
        try:
            self.kept.close()
        finally:
            self.over.set()
