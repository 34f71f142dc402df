"""`penstock run`: a flow on Spark until it ends or is told to."""

import signal
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from threading import Event
from types import FrameType
from typing import Annotated, Literal

import typer
from rich.console import Console
from rich.live import Live

import penstock
from penstock.cli.errors import user_errors
from penstock.cli.flow_options import Options, Target
from penstock.cli.logs import LogLevel, LogLevelOption, logs_shown
from penstock.cli.run_view import DecisionLines, metrics_table, run_view
from penstock.cli.screen import Screen
from penstock.cli.target import load_flow
from penstock.control.control_plan import DEFAULT_POLICY, SHRINK_POOLS_AFTER
from penstock.durations import seconds
from penstock.epochs.boundary import KEEP
from penstock.policy.registry import policy_names
from penstock.spark.restarts import MOST

LOOK_EVERY_S = 1.0
NO_POLICY = "none"
FAILED = 1


def command(
    target: Target,
    options: Options = None,
    checkpoint: Annotated[
        str | None, typer.Option(help="Directory of the commits; needed to go on later.")
    ] = None,
    commit: Annotated[
        str | None,
        typer.Option(help="Longest time between two commits; 1 s if they are marks, else 30 s, or 10 min."),
    ] = None,
    commit_by: Annotated[
        Literal["marks", "boundaries"] | None,
        typer.Option(
            help="What commits are; marks with a checkpoint wherever they work, else boundaries.",
        ),
    ] = None,
    from_commit: Annotated[
        int | None,
        typer.Option(
            metavar="NUMBER",
            help="Start from an older commit, see `penstock checkpoint list`; later ones are put aside.",
        ),
    ] = None,
    keep_commits: Annotated[int, typer.Option(help="How many commits can be gone back to.")] = KEEP,
    drop_state: Annotated[
        list[str] | None,
        typer.Option(metavar="TASK[.NAME]", help="State in the checkpoint that is not wanted any more."),
    ] = None,
    master: Annotated[
        str | None, typer.Option(help="Spark master; local with enough slots if left out.")
    ] = None,
    sampling: Annotated[float, typer.Option(help="Share of the items that is measured, 0 to 1.")] = 0.1,
    limit: Annotated[
        str | None, typer.Option("--for", metavar="TIME", help='Stop after that time, for example "30 s".')
    ] = None,
    policy: Annotated[
        str,
        typer.Option(
            metavar="NAME",
            help=f"Who keeps the constraints: {', '.join(policy_names())}, or {NO_POLICY}.",
        ),
    ] = DEFAULT_POLICY,
    settings: Annotated[
        list[str] | None,
        typer.Option(
            "--set",
            metavar="KEY=VALUE",
            help="A parameter of the policy or of its guards; wins over those that every live flow has.",
        ),
    ] = None,
    interval: Annotated[
        str | None,
        typer.Option(help="Time between two decisions, 1 s or more; 5 s, less if commits are closer."),
    ] = None,
    measure_every: Annotated[
        str, typer.Option(help="Time between two reports of a worker, 0.5 s or more.")
    ] = "1 s",
    shrink_pools_after: Annotated[
        str, typer.Option(help="Pools that were far too large for so long are made smaller.")
    ] = SHRINK_POOLS_AFTER,
    metrics: Annotated[
        str | None,
        typer.Option(metavar="[HOST:]PORT", help="Serve metrics for Prometheus; loopback without a host."),
    ] = None,
    dashboard: Annotated[
        str | None,
        typer.Option(metavar="[HOST:]PORT", help="Show the flow in a browser; loopback without a host."),
    ] = None,
    restarts: Annotated[
        int, typer.Option(help="How often in ten minutes it is started again if Spark fails.")
    ] = MOST,
    recommend: Annotated[
        bool, typer.Option("--recommend", help="Decide and show, but change nothing.")
    ] = False,
    recording: Annotated[
        Path | None, typer.Option(help="File for snapshots and decisions, for `penstock decide`.")
    ] = None,
    log_level: LogLevelOption = LogLevel.WARNING,
) -> None:
    """Run a flow, keep its constraints, and show how it goes.

    Ctrl-C or SIGTERM drain it, commit, and end with exit code 0.
    """
    console = Screen(stderr=True)
    with user_errors(console), logs_shown(console, log_level), _told_to_end() as told:
        flow = load_flow(target, options or ())
        limit_s = None if limit is None else seconds(limit)
        job = penstock.run(
            flow,
            checkpoint=checkpoint,
            commit=commit,
            commit_by=commit_by,
            from_commit=from_commit,
            keep_commits=keep_commits,
            drop_state=drop_state or (),
            master=master,
            sampling=sampling,
            measure_every=measure_every,
            restarts=restarts,
            policy=None if policy == NO_POLICY else policy,
            settings=settings or (),
            interval=interval,
            recommend=recommend,
            recording=recording,
            metrics=metrics,
            dashboard=dashboard,
            shrink_pools_after=shrink_pools_after,
        )
        try:
            if job.metrics_url is not None:
                console.print(f"metrics at {job.metrics_url}", markup=False)
            if job.dashboard_url is not None:
                console.print(f"dashboard at {job.dashboard_url}", markup=False, soft_wrap=True)
            _watch(job, console, told, limit_s)
            if told.is_set():
                console.print("stopping: what is under way is brought to its end")
            drained = job.stop()
            job.await_termination(0)  # raises if it had failed in the moment in which it was told to end
            console.print(str(drained), markup=False, highlight=False, soft_wrap=True)
        except penstock.JobFailed as error:
            console.print(f"penstock: {error}", markup=False, style="red", soft_wrap=True)
            raise typer.Exit(FAILED) from None


def _watch(job: "penstock.Job", console: Console, told: Event, limit_s: float | None) -> None:
    """Show once a second how it goes until the job is over, its time is up, or it is told to end."""
    until_s = None if limit_s is None else time.monotonic() + limit_s
    with ExitStack() as stack:
        show: Callable[[], None]
        if console.is_terminal:
            live = stack.enter_context(Live(console=console, auto_refresh=False))
            show = lambda: live.update(run_view(job), refresh=True)  # noqa: E731
        else:
            show = DecisionLines(job.control, console).print
        while not told.is_set() and (until_s is None or time.monotonic() < until_s):
            over = job.await_termination(LOOK_EVERY_S)
            show()
            if over:
                break
    if not console.is_terminal:
        console.print(metrics_table(job.metrics(), job.status.state))


@contextmanager
def _told_to_end() -> Iterator[Event]:
    """Ctrl-C and SIGTERM set a flag: an exception out of nowhere would tear what Spark is just doing.

    Only the first of them; after it they act as before, for those who will not wait.
    """
    told = Event()
    before = {number: signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)}

    def restore() -> None:
        for number, handler in before.items():
            signal.signal(number, handler)

    def end(_number: int, _frame: FrameType | None) -> None:
        told.set()
        restore()

    for number in before:
        signal.signal(number, end)
    try:
        yield told
    finally:
        restore()
