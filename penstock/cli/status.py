"""`penstock status`: what a flow is doing, told by itself, or did, from the files it left."""

import json
import time
from collections.abc import Iterator
from datetime import datetime
from pathlib import Path
from typing import Annotated

import msgspec
import typer
from rich.console import Console

from penstock.cli.completion import running_flows
from penstock.cli.control_view import control_view
from penstock.cli.errors import user_errors
from penstock.cli.live_view import live_view
from penstock.cli.running import asked
from penstock.control.decision_log import Entry
from penstock.control.status import FlowStatus, manner, read_status
from penstock.operate.client import find
from penstock.operate.protocol import AskStatus, FlowNow

# A flow that says nothing for so many intervals was probably killed.
_SILENT_INTERVALS = 3
_LATE_S = 5.0


def command(
    what: Annotated[
        str | None,
        typer.Argument(
            metavar="[FLOW or PLACE]",
            help="A flow that runs (name, pid or run, see `penstock ps`), a recording, or the directory of a"
            " checkpoint; the only flow that runs if left out.",
            autocompletion=running_flows,
        ),
    ] = None,
    last: Annotated[int, typer.Option(min=0, help="How many decisions to list.")] = 5,
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON object instead of tables.")] = False,
) -> None:
    """Show how a flow is that runs, or was that ran under a policy: state, constraints, last decisions."""
    errors = Console(stderr=True)
    with user_errors(errors):
        if what is not None and _is_place(what):
            _show_place(Path(what), last, as_json=as_json)
        else:
            _show_running(what, last, errors, as_json=as_json)


def _is_place(what: str) -> bool:
    """Whether a path is meant: one that is there, or what no flow can be called, unless a flow is."""
    if "/" in what or what.endswith((".json", ".jsonl")):
        return True
    return Path(what).exists() and not any(flow.greeting.flow == what for flow in find().flows)


def _show_running(reference: str | None, last: int, errors: Console, *, as_json: bool) -> None:
    greeting, now = asked(reference, AskStatus(), errors)
    assert isinstance(now, FlowNow)
    if as_json:
        typer.echo(json.dumps(msgspec.to_builtins(greeting) | msgspec.to_builtins(now)))
        return
    console = Console()
    console.print(live_view(greeting, now))
    if now.control is not None:
        _list_decisions(now.control, last, console)


def _show_place(place: Path, last: int, *, as_json: bool) -> None:
    status = read_status(place)
    if as_json:
        typer.echo(msgspec.json.encode(status).decode())
        return
    console = Console()
    for line in headline(status, time.time()):
        console.print(line, markup=False)
    if status.snapshot is not None and status.decisions:
        console.print(control_view(status.snapshot, status.decisions))
    _list_decisions(status, last, console)


def _list_decisions(status: FlowStatus, last: int, console: Console) -> None:
    for entry in status.decisions[-last:] if last else []:
        console.print(_decision(entry), markup=False, highlight=False)


def headline(status: FlowStatus, now_s: float) -> Iterator[str]:
    """The state in a sentence or two, with doubts where they are due."""
    yield f"{status.flow}: {status.state}, {status.message}; policy {status.policy}{manner(status)}"
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
