"""`penstock ps`: the flows of this user that run on this machine."""

import json
from datetime import datetime
from typing import Annotated

import msgspec
import typer
from rich.console import Console
from rich.table import Table

from penstock.cli.errors import FAILED, tell_error
from penstock.control.status import manner
from penstock.operate.client import ANSWER_S, Call, NoAnswerError, Running, find
from penstock.operate.place import PlaceError
from penstock.operate.protocol import AskStatus, FlowNow, ProtocolError


def command(
    as_json: Annotated[bool, typer.Option("--json", help="One JSON object per flow.")] = False,
) -> None:
    """List the flows that run; exit code 1 if something kept it from finding all of them."""
    errors = Console(stderr=True)
    found = find()
    problems = list(found.problems)
    seen: list[tuple[Running, FlowNow]] = []
    for flow in found.flows:
        try:
            with Call(flow.path) as call:
                answer = call.ask(AskStatus(), ANSWER_S)
        except (NoAnswerError, PlaceError, ProtocolError) as error:
            problems.append(str(error))
            continue
        if isinstance(answer, FlowNow):
            seen.append((flow, answer))
    for flow, now in seen if as_json else []:
        about = msgspec.to_builtins(flow.greeting) | {"state": now.state, "policy": _policy(now)}
        about["commits"] = None if now.commits is None else msgspec.to_builtins(now.commits)
        print(json.dumps(about), flush=True)
    if not as_json:
        Console().print(_table(seen) if seen else "no flow runs under this user on this machine")
    for problem in problems:
        tell_error(errors, problem)
    if problems:
        raise typer.Exit(FAILED)


def _table(seen: list[tuple[Running, FlowNow]]) -> Table:
    table = Table("flow", "run", "pid", "since", "state", "replicas", "policy", "last commit")
    for flow, now in seen:
        greeting = flow.greeting
        table.add_row(
            greeting.flow,
            greeting.run[:8],
            str(greeting.pid),
            datetime.fromtimestamp(greeting.started_at_s).strftime("%d %b %H:%M:%S"),
            now.state,
            str(sum(task.replicas for task in now.tasks)),
            _policy(now) or "none",
            _last_commit(now),
        )
    return table


def _last_commit(now: FlowNow) -> str:
    """Where commits are epoch marks."""
    commits = now.commits
    if commits is None or commits.epoch is None or commits.age_s is None:
        return ""
    return f"epoch {commits.epoch:,}, {commits.age_s:.1f} s ago"


def _policy(now: FlowNow) -> str | None:
    if now.control is None:
        return None
    return f"{now.control.policy}{manner(now.control)}"
