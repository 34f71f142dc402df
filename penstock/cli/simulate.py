"""`penstock simulate`: an application on the simulated engine, under any policy."""

from __future__ import annotations

import dataclasses
import json
from contextlib import ExitStack
from pathlib import Path
from typing import Annotated, Any

import msgspec
import typer
from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn
from rich.table import Table

from penstock.control.recording import Recorder, RecordingError, decisions_path, read_header, read_snapshots
from penstock.control.recording_header import RecordingHeader, installed_versions
from penstock.policy.guards.compose import guarded
from penstock.policy.guards.parameters import GuardParameters
from penstock.policy.parameters import SettingError, parse_settings
from penstock.policy.port import Policy
from penstock.policy.registry import UnknownPolicyError, create_policy, parameters_type
from penstock.sim.catalogue import APPLICATIONS, UnknownWorkloadError, find_workload
from penstock.sim.memory import keep_freed_memory
from penstock.sim.model import FlowModel, ModelError
from penstock.sim.recorded import recorded_model
from penstock.sim.run import Point, simulate
from penstock.sim.summary import Summary, summarise

_PROFILES = "; ".join(f"{app.name}: {', '.join(app.profiles)}" for app in APPLICATIONS.values())


def command(
    application: Annotated[
        str | None, typer.Argument(help=f"One of {', '.join(APPLICATIONS)}.", metavar="APP")
    ] = None,
    recording: Annotated[
        Path | None, typer.Option(help="Instead of an APP: the flow and the load of a recorded run.")
    ] = None,
    policy: Annotated[str, typer.Option(help="Which policy decides.")] = "nephele",
    profile: Annotated[
        str | None, typer.Option(help=f"Which load ({_PROFILES}); the first is the default.")
    ] = None,
    seconds: Annotated[
        float | None, typer.Option(help="How long; as long as the profile by default.")
    ] = None,
    seed: Annotated[int, typer.Option(help="The same seed gives the same run.")] = 0,
    settings: Annotated[
        list[str] | None, typer.Option("--set", help="A parameter of the policy, <policy>.<name>=<value>.")
    ] = None,
    guards: Annotated[bool, typer.Option("--guards", help="Wrap the policy in the guard rails.")] = False,
    as_json: Annotated[
        bool, typer.Option("--json", help="Print one JSON object instead of a table.")
    ] = False,
    out: Annotated[
        Path | None,
        typer.Option(
            help="Record snapshots here (one per line, for `penstock decide`) and decisions beside it;"
            " what is there stays, and this run is appended."
        ),
    ] = None,
) -> None:
    """Run an application on the simulated engine and report how its constraints were kept."""
    errors = Console(stderr=True)
    if seconds is not None and not seconds > 0.0:
        errors.print(f"--seconds: {seconds} is not a positive number of seconds", markup=False)
        raise typer.Exit(2)
    try:
        flow = _flow(application, profile, recording)
        decider = _decider(policy, settings or [], guards=guards)
    except (UnknownWorkloadError, UnknownPolicyError, SettingError, RecordingError, ModelError) as error:
        errors.print(str(error), markup=False)
        raise typer.Exit(2) from error
    keep_freed_memory()
    whole_s = flow.seconds if seconds is None else seconds
    bar = Progress(
        TextColumn("{task.description}"),
        BarColumn(),
        TextColumn("{task.fields[state]}"),
        TimeRemainingColumn(),
        console=errors,
        transient=True,
    )
    header = RecordingHeader(
        flow=flow.name,
        policy=policy,
        settings=settings or [],
        interval_s=flow.interval_s,
        started_at_s=0.0,
        versions=installed_versions(),
    )
    with ExitStack() as stack:
        try:
            recorder = None if out is None else stack.enter_context(Recorder(out, header))
        except OSError as error:
            errors.print(f"--out: {out} cannot be written: {error.strerror}", markup=False)
            raise typer.Exit(2) from error
        except RecordingError as error:
            errors.print(f"--out: {error}", markup=False)
            raise typer.Exit(2) from error
        stack.enter_context(bar)
        job = bar.add_task(f"{flow.name} under {policy}", total=whole_s, state="")

        def show(point: Point) -> None:
            bar.update(job, completed=point.end_s, state=_state(point))

        run = simulate(flow, decider, seed=seed, seconds=whole_s, recorder=recorder, each=show)
    summary = summarise(run)
    if as_json:
        typer.echo(json.dumps(dataclasses.asdict(summary)))
        return
    _show(summary)
    if out is not None:
        typer.echo(f"snapshots: {out}\ndecisions: {decisions_path(out)}")


def _flow(application: str | None, profile: str | None, recording: Path | None) -> FlowModel:
    """What is to be simulated: a known application, or what a recording shows."""
    if (application is None) == (recording is None):
        raise UnknownWorkloadError(f"give either an APP ({', '.join(APPLICATIONS)}) or --recording FILE")
    if application is not None:
        return find_workload(application, profile)
    assert recording is not None
    try:
        header = read_header(recording)
        name = recording.stem if header is None else header.flow
        return recorded_model(list(read_snapshots(recording)), name)
    except OSError as error:
        raise RecordingError(f"--recording: {recording} cannot be read: {error.strerror}") from None


def _decider(name: str, settings: list[str], *, guards: bool) -> Policy[Any]:
    """The policy with its settings, in its guards if asked for."""
    groups: dict[str, type[msgspec.Struct]] = {name: parameters_type(name)}
    if guards:
        groups["guards"] = GuardParameters
    parsed = parse_settings(settings, groups)
    policy = create_policy(name, parsed[name])
    return guarded(policy, msgspec.convert(parsed["guards"], GuardParameters)) if guards else policy


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
