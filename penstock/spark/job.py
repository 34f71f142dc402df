"""A running flow: its handle, and the switches that can be turned while it runs."""

import contextlib
import shutil
import sys
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import msgspec
from pyspark.sql.streaming.query import StreamingQuery

from penstock.control.decision_log import Entry
from penstock.durations import Duration, milliseconds, seconds
from penstock.flow.errors import FlowError
from penstock.flow.layers import Layout
from penstock.spark.bridge import Bridge
from penstock.spark.changes import Change, change, check_slots
from penstock.spark.measuring import measuring_interval_s, sampling_share
from penstock.spark.metrics import Ledger, Metrics
from penstock.spark.metrics_address import metrics_address
from penstock.spark.progress import Progress, State, Status
from penstock.spark.routes import Settings
from penstock.spark.view import View
from penstock.stats.snapshot import Snapshot

_TICK_S = 0.1
_CLOSE_MS = 10_000
_BOUNDARY_MS = 120_000


class JobFailed(RuntimeError):  # noqa: N818 - said of a job, as users say it
    """The flow has stopped by itself; the message names the task, the item and the error."""


class Job:
    """Like Spark's StreamingQuery: `status`, `last_progress`, `await_termination`, `stop`, `exception`."""

    def __init__(
        self,
        layout: Layout,
        settings: Settings,
        bridge: Bridge,
        query: StreamingQuery,
        slots: int,
        temporary: str | None,
    ) -> None:
        self._layout = layout
        self._settings = settings
        self._bridge = bridge
        self._query = query
        self._slots = slots
        self._temporary = temporary
        self._ledger = Ledger()
        self._view = self.view()
        self._progress = Progress()
        self._state: State = "running"
        self._error: JobFailed | None = None
        self._decisions: Callable[[], list[Entry]] = list
        self._when_over: list[Callable[[], None]] = []
        self._changing = threading.RLock()
        self._over = threading.Event()
        self._monitor = threading.Thread(target=self._watch, name="penstock-monitor", daemon=True)
        self._monitor.start()

    @property
    def status(self) -> Status:
        """Running, draining, stopped or failed."""
        detail = str(self._error) if self._error else f"batch {self._batch()}"
        return Status(self._state, detail)

    @property
    def layout(self) -> Layout:
        """Where everything is placed now."""
        return self._layout

    @property
    def slots(self) -> int:
        """The task slots that Spark has, all of which the flow may take."""
        return self._slots

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

        When the drain takes longer than `timeout`, the batch is abandoned; a later start on the same
        checkpoint replays it.
        """
        with self._changing:
            if self._state != "running":
                self._over.wait()
                return
            self._state = "draining"
            self._bridge.end_batch(closing=True)
            self._await_gate(seconds(timeout))
            self._finish("stopped", None)

    def metrics(self) -> Metrics:
        """Totals of every task, and the latency at the sinks; at most about a second old."""
        pools = {task.name: self._layout.unit_of(task.name).pool for task in self._layout.graph.tasks}
        return self._ledger.metrics(dict(self._settings.active), pools)

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
        """Another pair of eyes, for somebody who looks at intervals of their own."""
        return View(self._ledger, lambda: (self._layout, self._settings))

    def serve_metrics(self, address: str | int) -> str:
        """Let Prometheus scrape the flow at `[HOST:]PORT`, this machine only without a host; the URL.

        Port 0 takes any that is free. Needs the extra `metrics`; ends with the flow.
        """
        host, port = metrics_address(address)
        from penstock.spark.prometheus import MetricsServer

        self._check_running()
        server = MetricsServer(self, host, port)
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
        with self._changing:
            self._check_running()
            return self._turn(
                change(
                    self._layout,
                    self._settings,
                    active=replicas,
                    lifetimes_ms=lifetimes_ms,
                    chains=chains,
                    pools=pools,
                )
            )

    def await_effect(self, timeout_s: float) -> bool:
        """Wait until every executor has started and told its workers what was changed last; True if so."""
        return self._bridge.await_adopted(round(timeout_s * 1000))

    def set_active(self, task: str, replicas: int) -> None:
        """Use that many replicas of a task's pool, from the next envelope on.

        The replicas of a task that receives by key change at a boundary, so that no key is in two places.
        """
        with self._changing:
            self._check_running()
            self._turn(change(self._layout, self._settings, active={task: replicas}))

    def set_chains(self, chains: Sequence[Sequence[str]]) -> None:
        """Run the tasks of each chain in one process, and all others in their own, from the next item on."""
        with self._changing:
            self._check_running()
            self._turn(change(self._layout, self._settings, chains=chains))

    def set_batch_lifetime(self, stream: str, lifetime: Duration) -> None:
        """Ship the envelopes of a stream after that time, from the next one on; 0 ships at once."""
        with self._changing:
            self._check_running()
            self._turn(change(self._layout, self._settings, lifetimes_ms={stream: milliseconds(lifetime)}))

    def set_bound(self, constraint: str, bound: Duration) -> None:
        """Hold a constraint to another bound from the next snapshot on."""
        with self._changing:
            self._check_running()
            self._layout = self._layout.with_bound(constraint, milliseconds(bound))

    def set_sampling(self, rate: float) -> None:
        """Measure that share of the items."""
        share = sampling_share(rate)
        with self._changing:
            self._check_running()
            self._publish(msgspec.structs.replace(self._settings, sampling=share))

    def set_measure_every(self, every: Duration) -> None:
        """Have every worker report that often; 0.5 s or more."""
        every_s = measuring_interval_s(every)
        with self._changing:
            self._check_running()
            self._publish(msgspec.structs.replace(self._settings, measure_every_s=every_s))

    def boundary(self) -> float:
        """End the running batch, commit it, and begin the next; how long no source was reading, in ms."""
        with self._changing:
            self._check_running()
            return self._at_boundary(lambda: None)

    def set_pool(self, task: str, replicas: int) -> float:
        """Change how many replicas a task may have at the next boundary, without a restart; its gap in ms."""
        with self._changing:
            self._check_running()
            return self._turn(change(self._layout, self._settings, pools={task: replicas})) or 0.0

    def _turn(self, planned: Change) -> float | None:
        """Change the flow now, and at a boundary what has to wait for one.

        The gap of that boundary in ms, 0 if there was none, and None if there was nothing to change.
        """
        if planned.at_boundary is not None:
            check_slots(planned.at_boundary[0], self._slots)
        changed = planned.at_once != self._settings
        if changed:
            self._publish(planned.at_once)
        if planned.at_boundary is None:
            return 0.0 if changed else None
        layout, settings = planned.at_boundary

        def move() -> None:
            self._layout = layout
            self._bridge.change(layout)
            self._publish(settings)

        return self._at_boundary(move)

    def _at_boundary(self, change: Callable[[], None]) -> float:
        batch = self._bridge.batch()
        started = time.monotonic()
        self._bridge.end_batch(closing=False)
        if not self._await_gate(_BOUNDARY_MS / 1000):
            if not self._query.isActive:
                self._over.wait(_CLOSE_MS / 1000)
            self._check_running()
            self._bridge.release()
            raise FlowError(
                f"the running batch did not end within {_BOUNDARY_MS // 1000} s; nothing was changed"
            )
        change()
        self._bridge.release()
        deadline = time.monotonic() + _BOUNDARY_MS / 1000
        while not self._bridge.await_flowing(batch + 1, 50) and time.monotonic() < deadline:
            self._check_running()
            if self._bridge.is_exhausted():
                break
        return (time.monotonic() - started) * 1000

    def _await_gate(self, timeout_s: float) -> bool:
        deadline = time.monotonic() + timeout_s
        while time.monotonic() < deadline and self._query.isActive:
            if self._bridge.await_gate(50):
                return True
        return False

    def _publish(self, settings: Settings) -> None:
        self._settings = settings
        self._bridge.publish(msgspec.json.encode(settings))

    def _check_running(self) -> None:
        if self._error is not None:
            raise self._error
        if self._state != "running":
            raise FlowError(f'flow "{self._layout.graph.name}" is {self._state}')

    def _batch(self) -> int:
        return 0 if self._progress.last is None else int(self._progress.last["batch"])

    def _watch(self) -> None:
        """Collect reports, note progress, see to the end."""
        while not self._over.is_set():
            try:
                self._ledger.add(self._bridge.drain_reports())
                if self._progress.is_due():
                    self._progress.note(self._bridge.batch(), self.metrics())
                if not self._query.isActive:
                    self._ended_by_itself()
                elif self._bridge.is_exhausted() and self._changing.acquire(blocking=False):
                    try:
                        if self._state == "running":
                            self._state = "draining"
                            self._finish("stopped", None)
                    finally:
                        self._changing.release()
            except Exception as problem:  # noqa: BLE001 - a JVM that goes away raises many things
                if not self._over.is_set():
                    self._conclude("failed", JobFailed(f"Spark is gone: {problem}"))
                return
            self._over.wait(_TICK_S)

    def _ended_by_itself(self) -> None:
        if self._over.is_set() or self._state == "draining":
            return
        time.sleep(_TICK_S)
        self._ledger.add(self._bridge.drain_reports())
        failure, error = self._ledger.failure, self._query.exception()
        flow = self._layout.graph.name
        if failure is not None:
            text = f'flow "{flow}", task "{failure.task}", replica {failure.replica}: {failure.problem}'
        else:
            text = f'flow "{flow}": {error}'
        self._finish("failed", JobFailed(text))

    def _finish(self, state: State, error: JobFailed | None) -> None:
        with contextlib.suppress(Exception):
            self._query.stop()
        self._ledger.add(self._bridge.drain_reports())
        if not self._bridge.close(_CLOSE_MS):
            print("penstock: an executor did not confirm that its workers are gone", file=sys.stderr)
        self._conclude(state, error)

    def _conclude(self, state: State, error: JobFailed | None) -> None:
        self._error = error
        self._state = state
        if self._temporary is not None:
            shutil.rmtree(self._temporary, ignore_errors=True)
        for leave in self._when_over:
            leave()
        self._over.set()
