"""`penstock.run`: from a declared flow to a running one."""

import logging
import os
import sys
import time
import uuid
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import cloudpickle
from py4j.protocol import Py4JJavaError
from pyspark.errors import PySparkException

from penstock.control.control_plan import (
    DEFAULT_POLICY,
    KEEP_BOUNDS,
    SHRINK_POOLS_AFTER,
    ControlPlan,
    Settings,
    plan_for,
)
from penstock.control.status import IN_CHECKPOINT
from penstock.dashboard.server import dashboard_address
from penstock.durations import Duration
from penstock.epochs.boundary import KEEP
from penstock.flow.commits import stops_for_commits
from penstock.flow.delivery import refuse_without_marks
from penstock.flow.errors import FlowError
from penstock.flow.flow import Flow
from penstock.flow.graph import Graph
from penstock.flow.layers import Layout, lay_out, max_slots
from penstock.flow.pickling import check_picklable
from penstock.flow.reach import lasting_batches, out_of_reach
from penstock.flow.stateful import exact_tasks, refuse_moving_state, what_is_lost
from penstock.io.msgspec_codec import check_structs
from penstock.observe.metrics_server import metrics_address
from penstock.operate.opened import accept_commands
from penstock.spark.bridge import Bridge
from penstock.spark.changes import measuring_interval_s, sampling_share
from penstock.spark.checkpoint import TemporaryCheckpoint, checkpoint_address
from penstock.spark.commits import CommitBy, commits_of, kept_commits
from penstock.spark.committing import Committing
from penstock.spark.discovery import Discovery
from penstock.spark.failure_words import first_words
from penstock.spark.holding import hold
from penstock.spark.job import Job
from penstock.spark.launcher import Launcher
from penstock.spark.reading import Reading
from penstock.spark.restarts import MOST, Restarts
from penstock.spark.session import all_slots, session
from penstock.spark.slots import BOOK
from penstock.spark.state_place import NoRoom, room_of, start_from
from penstock.spark.supervisor import Supervisor
from penstock.wire.orders import Plan, Switches
from penstock.wire.routes import marked_streams, routes

if TYPE_CHECKING:
    from penstock.policy.port import Policy

_log = logging.getLogger("penstock")


def run(
    flow: Flow,
    *,
    checkpoint: str | os.PathLike[str] | None = None,
    master: str | None = None,
    conf: Mapping[str, str] | None = None,
    commit: Duration | None = None,
    commit_by: CommitBy | None = None,
    from_commit: int | None = None,
    keep_commits: int = KEEP,
    drop_state: Sequence[str] = (),
    sampling: float = 0.1,
    measure_every: Duration = "1 s",
    dead_letters: str | os.PathLike[str] | None = None,
    restarts: int = MOST,
    on_notice: Callable[[str], None] | None = None,
    policy: "str | Policy[Any] | None" = DEFAULT_POLICY,
    settings: Settings = (),
    interval: Duration | None = None,
    recommend: bool = False,
    recording: str | os.PathLike[str] | None = None,
    metrics: str | int | None = None,
    dashboard: str | int | None = None,
    shrink_pools_after: Duration = SHRINK_POOLS_AFTER,
) -> Job:
    """Start a flow on Spark, keep its constraints, and return its handle.

    `checkpoint` is where Spark keeps what is committed; without it the flow cannot be resumed. One driver at
    a time holds it. With a checkpoint commits are epoch marks that travel with the items, and nothing stops
    for them; without one, and in object stores other than S3, they are boundaries, for which sources stop.
    `commit_by` asks for "marks" or "boundaries". `commit` is the longest time between two (default: 1 s for
    marks, else 30 s with a checkpoint and 10 min without). `from_commit` is the number of an older commit to
    start from (`penstock checkpoint list`); later ones are put aside, into a checkpoint of their own. The
    last `keep_commits` can be gone back to.
    `drop_state` names tasks, or "TASK.NAME", whose state in the checkpoint is not wanted any more.
    `sampling` is the share of items that is measured, `measure_every` the time between two reports of a
    worker. `dead_letters` is the directory for items of tasks with on_error="dead_letter" (default:
    dead_letters/FLOW here).

    A flow that Spark or the machine ended is started again at its last commit, at most `restarts` times in
    ten minutes; errors of the user's code end it. `on_notice` is called with what somebody should hear of.

    `policy` decides about a flow that has constraints: its name, an object, or None if nobody is to. A policy
    other than the default also runs without constraints. `settings` are its parameters and those of its
    guards ("penstock.share=0.95", several of them, or a mapping), on top of those that every live flow
    has. `interval` is the time between two decisions (default: 5 s, less if commits are closer). With
    `recommend` it decides and changes nothing. `recording` is a file for everything that was measured and
    decided. `metrics` is a port, or HOST:PORT, for Prometheus; `dashboard` the same for browsers, at
    `job.dashboard_url`. A pool that was far too large for `shrink_pools_after` shrinks. The controller ends
    with the flow; should it fail, the flow goes on.
    """
    allowed = Restarts(restarts, time.monotonic)
    graph = flow.graph()
    share, measure_every_s = sampling_share(sampling), measuring_interval_s(measure_every)
    commits = commits_of(commit, commit_by, has_checkpoint=checkpoint is not None)
    if not commits.by_marks:
        refuse_without_marks(graph, "there is no checkpoint" if commit_by is None else "they are boundaries")
    keep = kept_commits(keep_commits)
    if from_commit is not None and checkpoint is None:
        raise FlowError("from_commit= needs the checkpoint= that has the commit")
    plan_with = partial(
        plan_for,
        graph,
        policy=policy,
        settings=settings,
        interval=interval,
        recommend=recommend,
        recording=recording,
        status=_status_in(checkpoint),
        shrink_pools_after=shrink_pools_after,
    )
    asked = plan_with(commit_s=commits.batch_ms / 1000)
    if metrics is not None:
        metrics_address(metrics)
    if dashboard is not None:
        dashboard_address(dashboard)
    check_picklable(graph)
    check_structs(graph)
    layout = lay_out(graph)
    reading = Reading(graph)
    letters = Path(dead_letters or dead_letters_of(graph)).absolute()
    plan = Plan(graph, str(letters))
    needs = _needs(layout)
    wanted = layout.slots if master else max_slots(graph)
    spark = session(wanted, master, conf, least=layout.slots, needed_by=needs)
    run_id = uuid.uuid4().hex
    with ExitStack() as undo, _told_in_words(graph.name):
        kept = undo.enter_context(ExitStack())  # until the flow is over
        claim = BOOK.claim(run_id, graph.name, layout.slots, all_slots(spark), needs)
        kept.callback(claim.free)
        place, notices = None, list[str]()
        if checkpoint is None:
            temporary = TemporaryCheckpoint()
            kept.callback(temporary.remove)
            address = temporary.address
        else:
            address = checkpoint_address(checkpoint)
            place = hold(spark, address, graph.name)
            kept.callback(place.release)
        room = room_of(spark, address, is_named=checkpoint is not None)
        committed = not isinstance(room, NoRoom)
        if isinstance(room, NoRoom) and commits.by_marks and not commits.asked:
            refuse_without_marks(graph, room.why)
            commits = commits_of(commit, "boundaries", has_checkpoint=True)
            asked = plan_with(commit_s=commits.batch_ms / 1000)
            notices.append(stops_for_commits(commits.every_ms, room.why))
        if from_commit is not None:
            aside = start_from(spark, address, room, from_commit, by_marks=commits.by_marks)
            if aside is not None:
                notices.append(f"commits after {from_commit} were put aside, into {aside}")
        refuse_moving_state(graph, committed=committed, by_marks=commits.by_marks)
        bridge = Bridge(spark, graph.name, cloudpickle.dumps(plan), sys.executable, _python_path())
        launcher = Launcher(
            spark,
            bridge,
            graph.name,
            reading,
            round(commits.batch_ms),
            address,
            checkpoint is not None,
            plan,
            room,
            keep,
            tuple(drop_state),
            Committing(bridge, commits.every_ms / 1000, keep) if commits.by_marks else None,
        )
        undo.callback(launcher.close, 0)
        switches = Switches(
            routes=routes(layout),
            active={task.name: task.parallelism.initial for task in graph.tasks},
            lifetime_ms={stream.name: stream.batch_lifetime_ms for stream in graph.streams},
            sampling=share,
            measure_every_s=measure_every_s,
            exact=exact_tasks(graph, by_marks=commits.by_marks) if committed else [],
            marked=marked_streams(layout) if commits.by_marks else None,
        )
        known = launcher.launch(layout, switches)
        undo.pop_all()
    supervisor = Supervisor(layout, switches, launcher, claim, allowed, known, kept, on_notice)
    if place is not None:
        place.when_taken(supervisor.place_taken)
    _log.info(
        "flow %s: run %s on %s, %d task slots", graph.name, run_id, spark.sparkContext.master, layout.slots
    )
    supervisor.tell_of_the_shuffle()
    if (look_every_s := reading.look_every_s) is not None:
        Discovery(
            reading,
            supervisor.board,
            look_every_s,
            supervisor.over,
            lambda: supervisor.state == "running",
            supervisor.tell,
        ).start()
    job = Job(supervisor, claim, commits.every_ms / 1000)
    for notice in [*notices, *(what_is_lost(graph, room.why) if isinstance(room, NoRoom) else [])]:
        job.tell(notice)
    _accompany(job, asked, metrics, dashboard)
    supervisor.when_over(accept_commands(job, run_id))
    return job


def _accompany(
    job: Job, asked: ControlPlan | None, metrics: str | int | None, dashboard: str | int | None
) -> None:
    """What ends with a flow that has just been started: its controller, and who serves its figures."""
    try:
        if asked is not None:
            for notice in _obstacles(job.layout, asked):
                job.tell(notice)
            job.keep_constraints(asked)
        if metrics is not None:
            job.serve_metrics(metrics)
        if dashboard is not None:
            job.serve_dashboard(dashboard)
    except BaseException:
        job.abandon()  # a flow without its handle could never be stopped
        raise


def _status_in(checkpoint: str | os.PathLike[str] | None) -> Path | None:
    """Where `penstock status` looks for a flow with this checkpoint; nowhere if it is not of this machine."""
    if checkpoint is None or ":/" in os.fspath(checkpoint):
        return None
    return Path(checkpoint) / IN_CHECKPOINT


def _obstacles(layout: Layout, plan: ControlPlan) -> list[str]:
    """Bounds that cannot be kept, as far as that is known before anything is measured."""
    lasting = [] if plan.name in KEEP_BOUNDS else [lasting_batches]
    checks = [out_of_reach, *lasting]
    found = (check(layout, constraint) for constraint in layout.graph.constraints for check in checks)
    return [notice for notice in found if notice is not None]


def dead_letters_of(graph: Graph) -> Path:
    """The directory for the dead letters of a flow, if none is named."""
    return Path("dead_letters") / graph.name


@contextmanager
def _told_in_words(flow: str) -> Iterator[None]:
    """An error of Java while a flow is started, without the stack."""
    try:
        yield
    except (Py4JJavaError, PySparkException) as problem:
        raise FlowError(f'flow "{flow}" cannot be started: {first_words(str(problem))}') from None


def _needs(layout: Layout) -> str:
    parts = [f"{unit.pool} for {' + '.join(unit.tasks)}" for layer in layout.layers for unit in layer.units]
    relays = sum(layer.relay is not None for layer in layout.layers)
    if relays:
        parts.append(f"{relays} for relays")
    return f'flow "{layout.graph.name}" needs {", ".join(parts)}'


def _python_path() -> str:
    """Workers import what the driver can import."""
    places = [place or str(Path.cwd()) for place in sys.path]
    return os.pathsep.join(dict.fromkeys(place for place in places if Path(place).exists()))
