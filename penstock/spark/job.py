"""The handle of a running flow."""

import contextlib
import logging
import sys
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

import msgspec
from py4j.protocol import Py4JJavaError
from pyspark.errors import PySparkException

from penstock import processes
from penstock.control.decision_log import Entry
from penstock.control.engine import Boundary
from penstock.durations import Duration, format_ms, milliseconds, seconds
from penstock.flow.errors import FlowError, JobFailed
from penstock.flow.layers import Layout
from penstock.observe.metrics_server import MetricsServer
from penstock.observe.progress import Progress, State, Status
from penstock.observe.reported import Metrics, Reported
from penstock.observe.view import View
from penstock.spark.boundaries import Boundaries
from penstock.spark.changes import change, measuring_interval_s, sampling_share
from penstock.spark.checkpoint import Committed, TemporaryCheckpoint
from penstock.spark.failure_words import failure_words, first_words, is_users
from penstock.spark.launcher import Launcher
from penstock.spark.monitor import Monitor
from penstock.spark.restarts import Outage, Restarts
from penstock.spark.slots import Claim
from penstock.spark.switchboard import Switchboard
from penstock.stats.snapshot import Snapshot
from penstock.wire.orders import Switches

__all__ = ["Job", "JobFailed"]

_CLOSE_MS = 10_000
_FIND_OUT_S = 10.0
_LOOK_S = 0.05
_LOOK_FOR_SLOTS_S = 0.2
_log = logging.getLogger("penstock")


class Job:
    """Like Spark's StreamingQuery: `status`, `last_progress`, `await_termination`, `stop`, `exception`."""

    def __init__(
        self,
        layout: Layout,
        switches: Switches,
        launcher: Launcher,
        claim: Claim,
        temporary: TemporaryCheckpoint | None,
        restarts: Restarts,
        started_at: Committed,
        on_notice: Callable[[str], None] | None,
    ) -> None:
        self._bridge = bridge = launcher.bridge
        self._launcher = launcher
        self._claim = claim
        self._temporary = temporary
        self._restarts = restarts
        self._on_notice = on_notice
        self._started_at = started_at
        self._stop_wanted = threading.Event()
        self._boundaries = Boundaries(bridge)
        self._board = Switchboard(layout, switches, bridge, self._boundaries, claim, self._check_running)
        self._reported = Reported()
        self._view = self.view()
        self._progress = Progress()
        self._state: State = "running"
        self._error: JobFailed | None = None
        self._decisions: Callable[[], list[Entry]] = list
        self._when_over: list[Callable[[], None]] = []
        self._over = threading.Event()
        self._monitor = Monitor(
            bridge,
            self._reported,
            self._progress,
            self.metrics,
            self._over,
            on_ended=self._ended_by_itself,
            on_exhausted=self._ran_dry,
            on_lost=lambda problem: self._conclude("failed", JobFailed(f"Spark is gone: {problem}")),
        )
        self._monitor.start()

    @property
    def name(self) -> str:
        """Of the flow."""
        return self._board.layout.graph.name

    @property
    def status(self) -> Status:
        """Running, restarting, draining, stopped or failed."""
        detail = str(self._error) if self._error else f"batch {self._batch()}"
        return Status(self._state, detail)

    @property
    def is_running(self) -> bool:
        """Whether it runs: neither draining nor over."""
        return self._state == "running"

    @property
    def layout(self) -> Layout:
        """Where everything is placed now."""
        return self._board.layout

    @property
    def slots(self) -> int:
        """The task slots that the flow may take: those of Spark that no other flow of this process holds."""
        return self._claim.most

    @property
    def last_progress(self) -> dict[str, Any] | None:
        """The latest of `recent_progress`."""
        return self._progress.last

    @property
    def recent_progress(self) -> list[dict[str, Any]]:
        """One entry per second: time, batch, totals of each task, latency at each sink."""
        return self._progress.entries

    def exception(self) -> JobFailed | None:
        """Why it stopped by itself, or None."""
        return self._error

    def await_termination(self, timeout_s: float | None = None) -> bool:
        """Wait until the flow is over; True if it is. Raises if it failed."""
        over = self._over.wait(timeout_s)
        if over and self._error is not None:
            raise self._error
        return over

    def await_end(self, timeout_s: float | None) -> bool:
        """Whether the flow is over, well or not, within that time."""
        return self._over.wait(None if timeout_s is None else max(0.0, timeout_s))

    def stop(self, timeout: Duration = "60 s") -> None:
        """Let the sources end, drain everything, commit, and leave nothing behind.

        Raises `JobFailed` if that did not work: a task failed meanwhile, or the drain took longer than
        `timeout`. Then nothing after the last commit is committed, and a later start on the same checkpoint
        replays it. A flow that is over already is left as it is.
        """
        if self._over.is_set():
            return
        self._stop_wanted.set()
        with self._board.turning:
            if self._state == "running":
                self._drain(timeout)
        self.await_termination()  # somebody else may be ending it, or has been about to start it again

    def _drain(self, timeout: Duration) -> None:
        self._state = "draining"
        if self._boundaries.hold(seconds(timeout), closing=True):
            self._finish("stopped", None)
        elif self._bridge.is_active:
            self._finish("failed", self._not_drained(timeout))
        else:
            self._monitor.await_last_words()
            self._finish("failed", JobFailed(self._why_ended()))

    def abandon(self) -> None:
        """Stop at once: what came after the last commit is given up, and a later start replays it."""
        self._stop_wanted.set()
        with self._board.turning:
            if self._state == "running":
                self._state = "draining"
                self._finish("stopped", None)
        self._over.wait()

    def metrics(self) -> Metrics:
        """Totals of every task, and the latency at the sinks; at most about a second old."""
        layout = self._board.layout
        pools = {task.name: layout.unit_of(task.name).pool for task in layout.graph.tasks}
        metrics = self._reported.metrics(self._board.switches.active, pools)
        restarts = self._restarts
        return replace(metrics, restarts=restarts.count, down_s=restarts.down_s, replayed=restarts.replayed)

    def decisions(self) -> list[Entry]:
        """What its controller decided and what came of it, oldest first; none without a controller."""
        return self._decisions()

    def report_decisions(self, entries: Callable[[], list[Entry]]) -> None:
        """Where `decisions` finds them: said by whoever controls the job."""
        self._decisions = entries

    def snapshot(self, interval_s: float) -> Snapshot:
        """What was measured since the last call, `interval_s` seconds ago, as a policy reads it."""
        return self._view.snapshot(interval_s)

    def view(self) -> View:
        """For somebody who looks at intervals of their own."""
        present = lambda: (self._board.layout, self._board.switches)  # noqa: E731
        return View(self._reported, present, processes.cpu_s if self._bridge.is_local else None)

    def serve_metrics(self, address: str | int) -> str:
        """Let Prometheus scrape the flow at `[HOST:]PORT`, this machine only without a host; the URL.

        Port 0 takes any that is free. Needs the extra `metrics`; ends with the flow.
        """
        self._check_running()
        server = MetricsServer(self, address)
        self._when_over.append(server.close)
        return server.url

    def adapt(
        self,
        replicas: Mapping[str, int],
        lifetimes_ms: Mapping[str, float],
        chains: Sequence[Sequence[str]] | None = None,
        pools: Mapping[str, int] | None = None,
    ) -> float | None:
        """Turn all switches of a decision at once; the gap in ms (0: no boundary), None if none turned."""
        return self._changed(active=replicas, lifetimes_ms=lifetimes_ms, chains=chains, pools=pools)

    def await_effect(self, timeout_s: float) -> bool:
        """Wait until every executor has started and told its workers what was changed last; True if so."""
        return self._bridge.await_adopted(round(timeout_s * 1000))

    def set_active(self, task: str, replicas: int) -> None:
        """Use that many replicas of a task's pool, from the next envelope on.

        The replicas of a task that receives by key change at a boundary, so that no key is in two places.
        """
        self._changed(active={task: replicas})

    def set_chains(self, chains: Sequence[Sequence[str]]) -> None:
        """Run the tasks of each chain in one process, and all others in their own, from the next item on."""
        self._changed(chains=chains)

    def set_batch_lifetime(self, stream: str, lifetime: Duration) -> None:
        """Ship the envelopes of a stream after that time, from the next one on; 0 ships at once."""
        self._changed(lifetimes_ms={stream: milliseconds(lifetime)})

    def set_bound(self, constraint: str, bound: Duration) -> None:
        """Hold a constraint to another bound from the next snapshot on."""
        with self._board.turning:
            self._check_running()
            self._board.layout = self._board.layout.with_bound(constraint, milliseconds(bound))

    def set_sampling(self, rate: float) -> None:
        """Measure that share of the items."""
        self._publish(sampling=sampling_share(rate))

    def set_measure_every(self, every: Duration) -> None:
        """Have every worker report that often; 0.5 s or more."""
        self._publish(measure_every_s=measuring_interval_s(every))

    def boundary(self) -> float:
        """End the running batch, commit it, and begin the next; how long no source was reading, in ms."""
        with self._board.turning:
            self._check_running()
            return self._boundaries.cross(lambda: None, self._check_running)

    def last_boundary(self) -> Boundary | None:
        """The last boundary, whoever began it, by `time.monotonic`; one that is not over yet ends now."""
        last = self._bridge.last_boundary()
        if last.gap_ms:
            return Boundary(ended_at_s=time.monotonic() - last.flowing_ms / 1000, gap_ms=last.gap_ms)
        if self._restarts.outages:
            outage = self._restarts.outages[-1]
            return Boundary(ended_at_s=outage.ended_s, gap_ms=(outage.ended_s - outage.began_s) * 1000)
        return None

    def outages(self) -> list[Outage]:
        """When it did not run, and why, oldest first; times by `time.monotonic`."""
        return list(self._restarts.outages)

    def set_pool(self, task: str, replicas: int) -> float:
        """Change how many replicas a task may have at the next boundary, without a restart; its gap in ms."""
        return self._changed(pools={task: replicas}) or 0.0

    def _changed(self, **wanted: Any) -> float | None:
        with self._board.turning:
            self._check_running()
            return self._board.turn(change(self._board.layout, self._board.switches, **wanted))

    def _publish(self, **switches: float) -> None:
        with self._board.turning:
            self._check_running()
            self._board.publish(msgspec.structs.replace(self._board.switches, **switches))

    def _check_running(self) -> None:
        deadline_s = time.monotonic() + _FIND_OUT_S
        while self._state == "running" and not self._bridge.is_active and time.monotonic() < deadline_s:
            self._over.wait(_LOOK_S)  # it has just ended; the monitor finds out why, and may start it again
        if self._error is not None:
            raise self._error
        if self._state != "running":
            raise FlowError(f'flow "{self.name}" is {self._state}')

    def _batch(self) -> int:
        return 0 if self._progress.last is None else int(self._progress.last["batch"])

    def _ran_dry(self) -> None:
        if not self._board.turning.acquire(blocking=False):
            return
        try:
            if self._state == "running":
                self._state = "draining"
                self._finish("stopped", None)
        finally:
            self._board.turning.release()

    def _ended_by_itself(self) -> None:
        """In the monitor's thread: the query is over, and nobody asked for that."""
        if self._over.is_set() or self._state == "draining":
            return
        self._monitor.await_last_words()
        why = self._why_ended()
        if self._reported.failure is not None or is_users(str(self._bridge.error())):
            self._finish("failed", JobFailed(why))
            return
        self._state = "restarting"
        with self._board.turning:
            problem = self._start_again(why)
            if problem is not None:
                self._finish("failed", JobFailed(f"{why}; {problem}"))

    def _start_again(self, why: str) -> str | None:
        """Until the flow runs again; what is in the way if that is not to be."""
        began_s = time.monotonic()
        self._tell(f"it is started again at its last commit: {why}")
        while (wait_s := self._restarts.wait_s()) is not None:
            self._bridge.close(_CLOSE_MS)
            self._reported.all_gone()
            if self._stop_wanted.wait(wait_s) or not self._await_slots():
                return "it was stopped before it could be started again"
            self._restarts.tried()
            try:
                known = self._launcher.launch(self._board.layout, self._board.switches)
            except (FlowError, Py4JJavaError, PySparkException) as problem:
                self._tell(f"it could not be started again: {first_words(str(problem))}")
                continue
            self._state = "running"
            outage = Outage(why, began_s, time.monotonic(), self._read_since(known))
            self._restarts.over(outage)
            took_s = outage.ended_s - began_s
            self._tell(f"it runs again after {took_s:.1f} s, {outage.replayed:,} items are replayed")
            return None
        return self._restarts.too_many()

    def _await_slots(self) -> bool:
        """Wait until there is room for all layers; False if the flow is to stop meanwhile."""
        needed, told = self._board.layout.slots, False
        while (found := self._launcher.slots() - self._claim.others) < needed:
            if not told:
                self._tell(f"it waits for task slots: it needs {needed}, and Spark has {found}")
                told = True
            if self._stop_wanted.wait(_LOOK_FOR_SLOTS_S):
                return False
        return True

    def _read_since(self, known: Committed) -> int:
        """Items that sources read after a commit, by what their workers told last."""
        tasks = self._reported.metrics(self._board.switches.active, self._board.switches.active).tasks
        sources = [task.name for task in self.layout.graph.tasks if task.kind == "source"]
        read = sum(tasks[name].items_in for name in sources) - self._restarts.replayed
        return max(0, read - (known.items - self._started_at.items))

    def _tell(self, notice: str) -> None:
        """Somebody must hear of it: the logger, and whoever asked for notices."""
        _log.warning("flow %s: %s", self.name, notice)
        if self._on_notice is None:
            return
        try:
            self._on_notice(notice)
        except Exception:  # noqa: BLE001 - users' code may raise anything, and the flow goes on
            _log.exception("flow %s: on_notice raised", self.name)

    def _why_ended(self) -> str:
        lost = self._bridge.lost_executors()
        if lost and self._reported.failure is None:
            return f'flow "{self.name}": {lost}'
        return failure_words(self.name, self._reported.failure, self._bridge.error())

    def _not_drained(self, timeout: Duration) -> JobFailed:
        return JobFailed(
            f'flow "{self.name}" was not drained within {format_ms(milliseconds(timeout))} and was stopped:'
            f" batch {self._bridge.batch()} is not committed, a start on the same checkpoint replays it"
        )

    def _finish(self, state: State, error: JobFailed | None) -> None:
        with contextlib.suppress(Exception):
            self._bridge.end_query()
        self._monitor.collect()
        if not self._bridge.close(_CLOSE_MS):
            print("penstock: an executor did not confirm that its workers are gone", file=sys.stderr)
        self._conclude(state, error)

    def _conclude(self, state: State, error: JobFailed | None) -> None:
        self._error = error
        self._state = state
        self._claim.free()
        if self._temporary is not None:
            self._temporary.remove()
        for leave in self._when_over:
            leave()
        self._over.set()
