"""`penstock run`: a flow on Spark until it ends or is told to."""

import signal
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from threading import Event
from types import FrameType
from typing import Annotated

import typer
from rich.console import Console
from rich.live import Live

import penstock
from penstock.cli.errors import user_errors
from penstock.cli.flow_options import Options
from penstock.cli.run_view import DecisionLines, metrics_table, run_view
from penstock.cli.target import load_flow
from penstock.control.control import Control, ControlPlan
from penstock.control.recording import RecordingError
from penstock.control.status import IN_CHECKPOINT
from penstock.durations import seconds
from penstock.observe.metrics_server import metrics_address
from penstock.policy.registry import policy_names
from penstock.spark.commits import commit_ms
from penstock.spark.restarts import MOST

LOOK_EVERY_S = 1.0
_LAST_DECISION_S = 10.0
FAILED = 1


def command(
    target: Annotated[
        str, typer.Argument(metavar="FLOW", help="module:flow, or the name of an application.")
    ],
    options: Options = None,
    checkpoint: Annotated[
        str | None, typer.Option(help="Directory of the commits; needed to go on later.")
    ] = None,
    commit: Annotated[
        str | None,
        typer.Option(help="Longest time between two commits; 30 s with a checkpoint, else 10 min."),
    ] = None,
    master: Annotated[
        str | None, typer.Option(help="Spark master; local with enough slots if left out.")
    ] = None,
    sampling: Annotated[float, typer.Option(help="Share of the items that is measured, 0 to 1.")] = 0.1,
    limit: Annotated[
        str | None, typer.Option("--for", metavar="TIME", help='Stop after that time, for example "30 s".')
    ] = None,
    policy: Annotated[
        str | None,
        typer.Option(help=f"Adapt the flow while it runs: {', '.join(policy_names())}."),
    ] = None,
    settings: Annotated[
        list[str] | None,
        typer.Option(
            "--set",
            metavar="KEY=VALUE",
            help="A parameter of the policy or of its guards; wins over those that every live flow has.",
        ),
    ] = None,
    interval: Annotated[str, typer.Option(help="Time between two decisions, 1 s or more.")] = "5 s",
    measure_every: Annotated[
        str, typer.Option(help="Time between two reports of a worker, 0.5 s or more.")
    ] = "1 s",
    shrink_pools_after: Annotated[
        str, typer.Option(help="Pools that were far too large for so long are made smaller.")
    ] = "2 min",
    metrics: Annotated[
        str | None,
        typer.Option(metavar="[HOST:]PORT", help="Serve metrics for Prometheus; loopback without a host."),
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
) -> None:
    """Run a flow and show how it goes; Ctrl-C or SIGTERM drain it, commit, and end with exit code 0."""
    console = Console(stderr=True)
    with user_errors(console), _told_to_end() as told:
        flow = load_flow(target, options or ())
        limit_s = None if limit is None else seconds(limit)
        if metrics is not None:
            metrics_address(metrics)
        plan = None
        if policy is not None:
            plan = ControlPlan(
                policy,
                settings=tuple(settings or ()),
                interval=interval,
                apply=not recommend,
                recording=recording,
                status=None if checkpoint is None else Path(checkpoint) / IN_CHECKPOINT,
                shrink_pools_after=shrink_pools_after,
            )
            plan.check_commits(commit_ms(commit, has_checkpoint=checkpoint is not None) / 1000)
        job = penstock.run(
            flow,
            checkpoint=checkpoint,
            commit=commit,
            master=master,
            sampling=sampling,
            measure_every=measure_every,
            restarts=restarts,
        )
        try:
            control = None if plan is None else Control(job, plan)
            if metrics is not None:
                console.print(f"metrics at {job.serve_metrics(metrics)}", markup=False)
            _watch(job, control, console, told, limit_s)
            if told.is_set():
                console.print("stopping: what is under way is brought to its end")
            drained = job.stop()
            job.await_termination(0)  # raises if it had failed in the moment in which it was told to end
            if control is not None:
                control.join(_LAST_DECISION_S)
            console.print(str(drained), markup=False, highlight=False, soft_wrap=True)
        except (penstock.FlowError, RecordingError, OSError):
            with suppress(penstock.JobFailed):  # what went wrong first is told
                job.stop()
            raise
        except penstock.JobFailed as error:
            console.print(f"penstock: {error}", markup=False, style="red", soft_wrap=True)
            raise typer.Exit(FAILED) from None


def _watch(
    job: "penstock.Job", control: Control | None, console: Console, told: Event, limit_s: float | None
) -> None:
    """Show once a second how it goes until the job is over, its time is up, or it is told to end."""
    until_s = None if limit_s is None else time.monotonic() + limit_s
    with ExitStack() as stack:
        show: Callable[[], None]
        if console.is_terminal:
            live = stack.enter_context(Live(console=console, auto_refresh=False))
            show = lambda: live.update(run_view(job, control), refresh=True)  # noqa: E731
        else:
            show = DecisionLines(control, console).print
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
