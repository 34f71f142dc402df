"""`penstock status`: what a controlled flow is doing, or did, from the files it leaves."""

import time
from collections.abc import Iterator
from datetime import datetime
from pathlib import Path
from typing import Annotated

import msgspec
import typer
from rich.console import Console

from penstock.cli.control_view import control_view
from penstock.cli.errors import user_errors
from penstock.control.decision_log import Entry
from penstock.control.status import FlowStatus, read_status

# A flow that says nothing for so many intervals was probably killed.
_SILENT_INTERVALS = 3
_LATE_S = 5.0


def command(
    place: Annotated[
        Path, typer.Argument(metavar="PLACE", help="A recording, or the directory of a checkpoint.")
    ],
    last: Annotated[int, typer.Option(min=0, help="How many decisions to list.")] = 5,
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON object instead of tables.")] = False,
) -> None:
    """Show state, constraints and the last decisions of a flow that runs, or ran, under a policy."""
    with user_errors(Console(stderr=True)):
        status = read_status(place)
    if as_json:
        typer.echo(msgspec.json.encode(status).decode())
        return
    console = Console()
    for line in headline(status, time.time()):
        console.print(line, markup=False)
    if status.snapshot is not None and status.decisions:
        console.print(control_view(status.snapshot, status.decisions))
    recent = status.decisions[-last:] if last else []
    for entry in recent:
        console.print(_decision(entry), markup=False, highlight=False)


def headline(status: FlowStatus, now_s: float) -> Iterator[str]:
    """The state in a sentence or two, with doubts where they are due."""
    mode = "" if status.applies else ", only recommending"
    yield f"{status.flow}: {status.state}, {status.message}; policy {status.policy}{mode}"
    silent_s = now_s - status.at_s
    if status.state in ("running", "draining") and silent_s > _SILENT_INTERVALS * status.interval_s + _LATE_S:
        yield f"it has said nothing for {silent_s:.0f} s: it was probably killed, or its controller is stuck"
    if status.problem is not None:
        yield status.problem


def _decision(entry: Entry) -> str:
    """A decision in the list: when, how many replicas, in effect how fast, and what was seen after it."""
    at = datetime.fromtimestamp(entry.at_s).strftime("%H:%M:%S")
    replicas = ", ".join(f"{task} {count}" for task, count in entry.decision.parallelism.items())
    words = [f"{at} #{entry.number}", replicas or "nothing elastic"]
    if entry.effect is not None and entry.effect.after_ms is not None:
        words.append(f"in effect after {entry.effect.after_ms:.0f} ms")
    if entry.observed is not None:
        seen = [
            f"{name} {'?' if ms is None else f'{ms:.1f} ms'}"
            for name, ms in entry.observed.latency_ms.items()
        ]
        words.append(f"then {', '.join(seen)}" if seen else "")
    if entry.decision.reasons:
        reason = entry.decision.reasons[0]
        words.append(f"{reason.rule}: {reason.why}")
    return "; ".join(word for word in words if word)
