"""The handle of a running flow."""

import time
from collections import deque
from collections.abc import Mapping, Sequence
from typing import Any

import msgspec

from penstock import processes
from penstock.control.by_hand import KEPT
from penstock.control.control import Control
from penstock.control.control_plan import ControlPlan
from penstock.control.decision_log import Entry
from penstock.control.engine import Boundary
from penstock.dashboard.live import LiveFlow
from penstock.dashboard.server import DashboardServer, dashboard_address
from penstock.durations import Duration, milliseconds, seconds
from penstock.epochs.looking import Kept
from penstock.flow.errors import JobFailed
from penstock.flow.layers import Layout
from penstock.observe.constraint_watch import ConstraintState
from penstock.observe.metrics_server import MetricsServer
from penstock.observe.progress import Status
from penstock.observe.reported import Metrics
from penstock.observe.view import View
from penstock.spark.changes import change, divisible, measuring_interval_s, pause, sampling_share
from penstock.spark.drained import Drained
from penstock.spark.restarts import Outage
from penstock.spark.slots import Claim
from penstock.spark.supervisor import Supervisor
from penstock.stats.snapshot import Snapshot
from penstock.wire.divisions import Spans

__all__ = ["Job", "JobFailed"]

# Longer than a decision takes to be carried out, should the flow end meanwhile.
_LAST_DECISION_S = 10.0


class Job:
    """Like Spark's StreamingQuery: `status`, `last_progress`, `await_termination`, `stop`, `exception`."""

    def __init__(self, supervisor: Supervisor, claim: Claim, commit_s: float) -> None:
        self._supervisor = supervisor
        self._board = supervisor.board
        self._claim = claim
        self._commit_s = commit_s
        self._view = self.view()
        self._control: Control | None = None
        self._metrics_url: str | None = None
        self._dashboard_url: str | None = None
        self._by_hand: deque[Entry] = deque(maxlen=KEPT)

    @property
    def name(self) -> str:
        """Of the flow."""
        return self._supervisor.name

    @property
    def status(self) -> Status:
        """Running, restarting, draining, stopped or failed."""
        error, last = self._supervisor.error, self.last_progress
        return Status(self._supervisor.state, str(error or f"batch {last['batch'] if last else 0}"))

    @property
    def is_running(self) -> bool:
        """Whether it runs: neither draining nor over."""
        return self._supervisor.state == "running"

    @property
    def layout(self) -> Layout:
        """Where everything is placed now."""
        return self._board.layout

    @property
    def slots(self) -> int:
        """The task slots that the flow may take: those of Spark that no other flow of this process holds."""
        return self._claim.most

    @property
    def commit_s(self) -> float:
        """The longest time between two commits."""
        return self._commit_s

    @property
    def control(self) -> Control | None:
        """What keeps its constraints: what it saw, and why it stopped if it did; None without a policy."""
        return self._control

    @property
    def metrics_url(self) -> str | None:
        """Where Prometheus scrapes the flow, if it does."""
        return self._metrics_url

    @property
    def dashboard_url(self) -> str | None:
        """Where the flow is seen in a browser, if it is, with the token by which it may be steered there."""
        return self._dashboard_url

    @property
    def last_progress(self) -> dict[str, Any] | None:
        """The latest of `recent_progress`."""
        return self._supervisor.progress.last

    @property
    def recent_progress(self) -> list[dict[str, Any]]:
        """One entry per second: time, batch, totals of each task, latency at each sink."""
        return self._supervisor.progress.entries

    def exception(self) -> JobFailed | None:
        """Why it stopped by itself, or None."""
        return self._supervisor.error

    def await_termination(self, timeout: Duration | None = None) -> bool:
        """Wait until the flow is over, at most for `timeout`; True if it is. Raises if it failed."""
        over = self._supervisor.over.wait(None if timeout is None else seconds(timeout))
        if over:
            self._await_control()
        if over and self._supervisor.error is not None:
            raise self._supervisor.error
        return over

    def await_end(self, timeout_s: float | None) -> bool:
        """Whether the flow is over, well or not, within that time."""
        return self._supervisor.over.wait(None if timeout_s is None else max(0.0, timeout_s))

    def stop(self, timeout: Duration = "60 s") -> Drained | None:
        """Let the sources end, drain everything, commit, and leave nothing behind; what was drained.

        If Spark ends the query meanwhile, it is started again first. Raises `JobFailed` if that did not work:
        a task failed, or it took longer than `timeout`. Then nothing after the last commit is committed, and
        a later start on the same checkpoint replays it. A flow that is over already is left as it is; None if
        it was not drained, because it had failed (see `exception`) or was abandoned.
        """
        try:
            return self._supervisor.stop(seconds(timeout))
        finally:
            self._await_control()

    def abandon(self) -> None:
        """Stop at once: what came after the last commit is given up, and a later start replays it."""
        self._supervisor.abandon()
        self._await_control()

    def metrics(self) -> Metrics:
        """Totals of every task, and the latency at the sinks; at most about a second old."""
        return self._supervisor.metrics()

    def state(self, task: str) -> list[Kept]:
        """What a task declares to keep (penstock.state): each value, as it was committed last."""
        return self._supervisor.committed_state(task)

    def constraints(self) -> list[ConstraintState]:
        """How each constraint was kept in its last interval, and in which share of all of them.

        An interval is as long as the `window` of the constraints. Percentiles need 100 samples in it.
        """
        return self._supervisor.watch.states()

    def decisions(self) -> list[Entry]:
        """What its policy decided and what came of it, oldest first; none without a policy."""
        return [] if self._control is None else self._control.decisions()

    def by_hand(self) -> list[Entry]:
        """What people changed while it ran, oldest first: in another terminal, or from the dashboard."""
        return list(self._by_hand)

    def log_by_hand(self, entry: Entry) -> None:
        """A change that somebody made is a decision in the log, and in the recording if there is one."""
        self._by_hand.append(entry if self._control is None else self._control.numbered(entry))

    def keep_constraints(self, plan: ControlPlan) -> None:
        """Let a controller decide about it from now on; it ends with the flow. `penstock.run` calls this."""
        self._control = Control(self, plan)

    def lifetimes_ms(self) -> dict[str, float]:
        """How long the envelopes of each stream wait for company."""
        return dict(self._board.switches.lifetime_ms)

    def tell(self, notice: str) -> None:
        """Let somebody hear of it: the logger, and whoever asked for notices."""
        self._supervisor.tell(notice)

    def snapshot(self, interval_s: float) -> Snapshot:
        """What was measured since the last call, `interval_s` seconds ago, as a policy reads it."""
        return self._view.snapshot(interval_s)

    def view(self, *, with_cpu: bool = True) -> View:
        """For somebody who looks at intervals of their own; CPU is dear to measure."""
        cpu_s = processes.cpu_s if with_cpu and self._supervisor.bridge.is_local else None
        of = self._supervisor
        return View(of.reported, of.present, cpu_s, of.splits, of.commits, divisible)

    def serve_metrics(self, address: str | int) -> str:
        """Let Prometheus scrape the flow at `[HOST:]PORT`, this machine only without a host; the URL.

        Port 0 takes any that is free. Needs the extra `metrics`; ends with the flow.
        """
        self._supervisor.check_running()
        server = MetricsServer(self, address)
        self._supervisor.kept.callback(server.close)
        self._metrics_url = server.url
        return server.url

    def serve_dashboard(self, address: str | int) -> str:
        """Show the flow in a browser at `[HOST:]PORT`, this machine only without a host; the URL.

        `dashboard_url` is the same with the token that steering takes. Port 0 takes any that is free. Needs
        the extra `dashboard`; ends with the flow.
        """
        self._supervisor.check_running()
        dashboard_address(address)
        watched = LiveFlow(self)
        try:
            server = DashboardServer(watched, address)
        except BaseException:
            watched.close()
            raise
        self._supervisor.kept.callback(watched.close)
        self._supervisor.kept.callback(server.close)
        self._dashboard_url = server.signed_url
        return server.url

    def adapt(
        self,
        replicas: Mapping[str, int],
        lifetimes_ms: Mapping[str, float],
        chains: Sequence[Sequence[str]] | None = None,
        pools: Mapping[str, int] | None = None,
        tables: Mapping[str, Spans] | None = None,
    ) -> float | None:
        """Turn all switches of a decision at once; the gap in ms (0: no boundary), None if none turned."""
        return self._changed(
            active=replicas, lifetimes_ms=lifetimes_ms, chains=chains, pools=pools, tables=tables
        )

    def await_effect(self, timeout_s: float) -> bool:
        """Wait until every executor has started and told its workers what was changed last; True if so."""
        return self._supervisor.bridge.await_adopted(round(timeout_s * 1000))

    def set_active(self, task: str, replicas: int) -> None:
        """Use that many replicas of a task's pool, from the next envelope on.

        The replicas of a task that receives by key change at a boundary, so that no key is in two places;
        with `marks`, and state of keys that it declares, at an epoch mark, while everything else goes on.
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
            self._supervisor.check_running()
            self._board.layout = self._board.layout.with_bound(constraint, milliseconds(bound))

    def pause(self, *sources: str) -> None:
        """Let sources read nothing more until they are resumed; what they have read goes its way."""
        self._pause(pause=sources)

    def resume(self, *sources: str) -> None:
        """Let sources that were paused read on."""
        self._pause(resume=sources)

    def set_sampling(self, rate: float) -> None:
        """Measure that share of the items."""
        self._publish(sampling=sampling_share(rate))

    def set_measure_every(self, every: Duration) -> None:
        """Have every worker report that often; 0.5 s or more."""
        self._publish(measure_every_s=measuring_interval_s(every))

    def boundary(self) -> float:
        """End the running batch, commit it, and begin the next; how long no source was reading, in ms."""
        with self._board.turning:
            self._supervisor.check_running()
            return self._supervisor.boundaries.cross(lambda: None, self._supervisor.check_running)

    def last_boundary(self) -> Boundary | None:
        """The last boundary, whoever began it, by `time.monotonic`; one that is not over yet ends now."""
        last = self._supervisor.bridge.last_boundary()
        if last.gap_ms:
            return Boundary(ended_at_s=time.monotonic() - last.flowing_ms / 1000, gap_ms=last.gap_ms)
        if self._supervisor.restarts.outages:
            outage = self._supervisor.restarts.outages[-1]
            return Boundary(ended_at_s=outage.ended_s, gap_ms=(outage.ended_s - outage.began_s) * 1000)
        return None

    def outages(self) -> list[Outage]:
        """When it did not run, and why, oldest first; times by `time.monotonic`."""
        return list(self._supervisor.restarts.outages)

    def set_pool(self, task: str, replicas: int) -> float:
        """Change how many replicas a task may have at the next boundary, without a restart; its gap in ms."""
        return self._changed(pools={task: replicas}) or 0.0

    def _await_control(self) -> None:
        """The flow is over: let the controller write down its last decision."""
        if self._control is not None:
            self._control.join(_LAST_DECISION_S)

    def _changed(self, **wanted: Any) -> float | None:
        with self._board.turning:
            self._supervisor.check_running()
            self._board.settle()
            return self._board.turn(change(self._board.layout, self._board.switches, **wanted))

    def _pause(self, **wanted: Sequence[str]) -> None:
        with self._board.turning:
            self._supervisor.check_running()
            self._board.publish(pause(self._board.layout, self._board.switches, **wanted))

    def _publish(self, **switches: float) -> None:
        with self._board.turning:
            self._supervisor.check_running()
            self._board.publish(msgspec.structs.replace(self._board.switches, **switches))
