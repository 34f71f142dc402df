"""`penstock simulate`: a flow on the simulated engine, under any policy."""

from __future__ import annotations

import dataclasses
import json
from contextlib import ExitStack
from functools import partial
from pathlib import Path
from typing import Annotated

import msgspec
import typer
from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn
from rich.table import Table

from penstock.cli.errors import user_errors
from penstock.cli.flow_options import Options
from penstock.cli.simulate_options import BesideError
from penstock.cli.simulate_shares import costs, shares_of, show_costs
from penstock.cli.simulated_flow import Seen, Told, flow_to_simulate, read_seen
from penstock.control.control_plan import DEFAULT_POLICY
from penstock.control.live_policy import policy_of
from penstock.control.live_settings import live_settings
from penstock.control.recording import Recorder, decisions_path
from penstock.control.recording_header import RecordingHeader, installed_versions
from penstock.durations import seconds as in_seconds
from penstock.policy.registry import policy_names
from penstock.sim.catalogue import APPLICATIONS
from penstock.sim.memory import keep_freed_memory
from penstock.sim.model import FlowModel
from penstock.sim.run import Point, simulate
from penstock.sim.summary import Summary, summarise

_PROFILES = "; ".join(f"{app.name}: {', '.join(app.profiles)}" for app in APPLICATIONS.values())


def command(
    target: Annotated[
        str | None,
        typer.Argument(help=f"module:flow, or one of {', '.join(APPLICATIONS)}.", metavar="FLOW"),
    ] = None,
    options: Options = None,
    measured: Annotated[
        Path | None,
        typer.Option(
            metavar="RECORDING",
            help="Service times and load as a recorded run measured them; without a FLOW, its flow too.",
        ),
    ] = None,
    service: Annotated[
        list[str] | None,
        typer.Option(metavar="TASK=TIME", help="What an item takes: work=5ms, or work=5ms,cv=0.5."),
    ] = None,
    ratio: Annotated[
        list[str] | None,
        typer.Option(metavar="TASK=NUMBER", help="Items that a task sends for each it gets; 1 if not said."),
    ] = None,
    load: Annotated[
        list[str] | None,
        typer.Option(
            metavar="[SOURCE=]LOAD",
            help="Items a second: 500, or 30s:200,1min:600, or trace.csv,speed_up=60 (column, time_column and"
            " scale too); the schedule of a paced source if not said.",
        ),
    ] = None,
    policy: Annotated[
        str | None,
        typer.Option(
            metavar="NAME",
            help=f"Who decides: {', '.join(policy_names())}; {DEFAULT_POLICY} if not said, or with --as-run"
            " the one that was recorded.",
        ),
    ] = None,
    profile: Annotated[
        str | None, typer.Option(help=f"Which load of an application ({_PROFILES}); the first if not said.")
    ] = None,
    seconds: Annotated[
        float | None, typer.Option(help="How long; as long as the load lasts if not said.")
    ] = None,
    interval: Annotated[
        str | None, typer.Option(help="Time between two decisions; 5 s for a flow of your own.")
    ] = None,
    seed: Annotated[int, typer.Option(help="The same seed gives the same run.")] = 0,
    settings: Annotated[
        list[str] | None,
        typer.Option("--set", metavar="KEY=VALUE", help="A parameter of the policy or of its guards."),
    ] = None,
    guards: Annotated[bool, typer.Option("--guards", help="Wrap the policy in the guard rails.")] = False,
    as_run: Annotated[
        bool,
        typer.Option("--as-run", help="Decide as `penstock run` does: with its guards and live settings."),
    ] = False,
    shares: Annotated[
        str | None,
        typer.Option(
            metavar="SHARES",
            help="What it costs to hold the constraints more often, as 0.9,0.95,0.99: one run for each.",
        ),
    ] = None,
    as_json: Annotated[
        bool, typer.Option("--json", help="Print one JSON object instead of a table.")
    ] = False,
    recording: Annotated[
        Path | None,
        typer.Option(
            help="Record snapshots here (one per line, for `penstock decide`) and decisions beside it;"
            " what is there stays, and this run is appended."
        ),
    ] = None,
) -> None:
    """Run a flow on the simulated engine and report how its constraints were kept."""
    errors = Console(stderr=True)
    with user_errors(errors), ExitStack() as stack:
        if seconds is not None and not seconds > 0.0:
            raise BesideError(f"--seconds: {seconds} is not a positive number of seconds")
        seen = None if measured is None else read_seen(measured)
        told = Told(target, options or (), profile, service or (), ratio or (), load or (), seen)
        flow = flow_to_simulate(told, seconds)
        if interval is not None:
            flow = dataclasses.replace(flow, interval_s=_positive_s(interval))
        header = _header(flow, seen, policy, settings or [], guards=guards, as_run=as_run)
        decider = policy_of(header)
        asked = None if shares is None else shares_of(shares, header.policy, recording)
        recorder = None if recording is None else stack.enter_context(Recorder(recording, header))
        keep_freed_memory()
        whole_s = flow.seconds if seconds is None else seconds
        bar = stack.enter_context(_progress(errors))
        job = bar.add_task(f"{flow.name} under {header.policy}", total=whole_s, state="")

        def show(point: Point) -> None:
            bar.update(job, completed=point.end_s, state=_state(point))

        if asked is not None:
            found = costs(flow, partial(policy_of, header), asked, seed=seed, seconds=whole_s, each=show)
            bar.stop()
            if as_json:
                typer.echo(json.dumps([dataclasses.asdict(one) for one in found]))
            else:
                show_costs(flow, found)
            return
        run = simulate(flow, decider, seed=seed, seconds=whole_s, recorder=recorder, each=show)
    summary = summarise(run)
    if as_json:
        typer.echo(json.dumps(dataclasses.asdict(summary)))
        return
    _show(summary)
    if recording is not None:
        typer.echo(f"snapshots: {recording}\ndecisions: {decisions_path(recording)}")


def _positive_s(interval: str) -> float:
    found_s = in_seconds(interval)
    if not found_s > 0.0:
        raise BesideError(f"--interval: {interval} is not longer than nothing")
    return found_s


def _header(
    flow: FlowModel,
    seen: Seen | None,
    policy: str | None,
    settings: list[str],
    *,
    guards: bool,
    as_run: bool,
) -> RecordingHeader:
    """Who decides, as it is written down; the policy is made from that."""
    ran = seen.header if seen is not None and as_run else None
    if ran is not None and policy is None:
        if settings:
            raise BesideError("--as-run has the settings of the recording; --set needs --policy")
        return msgspec.structs.replace(
            ran,
            flow=flow.name,
            recommend=False,
            interval_s=flow.interval_s,
            started_at_s=0.0,
            versions=installed_versions(),
        )
    name = DEFAULT_POLICY if policy is None else policy
    return RecordingHeader(
        flow=flow.name,
        policy=name,
        settings=[*(live_settings(name) if as_run else ()), *settings],
        guards=guards or as_run,
        slots=None if ran is None else ran.slots,
        interval_s=flow.interval_s,
        started_at_s=0.0,
        versions=installed_versions(),
    )


def _progress(console: Console) -> Progress:
    return Progress(
        TextColumn("{task.description}"),
        BarColumn(),
        TextColumn("{task.fields[state]}"),
        TimeRemainingColumn(),
        console=console,
        transient=True,
    )


def _state(point: Point) -> str:
    latencies = ", ".join(
        f"{name} {'?' if mean is None else f'{mean:.1f}'} ms" for name, mean in point.latency_ms.items()
    )
    return f"{point.end_s:,.0f} s, {point.due_per_s:,.0f}/s, {latencies}"


def _show(summary: Summary) -> None:
    console = Console()
    kept = Table("constraint", "bound", "held", "mean", "p95", "broken for", "settling", title="constraints")
    for name, outcome in summary.constraints.items():
        kept.add_row(
            name,
            f"{outcome.bound_ms:g} ms",
            f"{outcome.share_held:.1%}",
            _milliseconds(outcome.mean_ms),
            _milliseconds(outcome.p95_ms),
            f"{outcome.violated_s:.0f} s",
            f"{outcome.settling_s:.1f} s",
        )
    used = Table("figure", "value", title=f"{summary.flow} under {summary.policy}")
    used.add_row("simulated", f"{summary.simulated_s:,.0f} s, {summary.items:,} items")
    used.add_row("processed", f"{summary.processed_share:.2%}")
    for name, hours in summary.task_hours.items():
        used.add_row(f"task-hours of {name}", f"{hours:.2f}")
    used.add_row("worker-hours", f"{summary.worker_hours:.2f}")
    used.add_row("CPU of leased workers", f"{summary.cpu_share:.1%}")
    used.add_row("scaling actions", str(summary.actions))
    if summary.overshoot is not None:
        used.add_row("overshoot", f"{summary.overshoot:.0%}")
    console.print(kept)
    console.print(used)


def _milliseconds(value: float | None) -> str:
    return "?" if value is None else f"{value:.1f} ms"
