"""`penstock stop`: end a flow that runs in another terminal, with nothing lost."""

import json
from typing import Annotated

import msgspec
import typer
from rich.console import Console

from penstock.cli.errors import user_errors
from penstock.cli.running import FlowReference, asked
from penstock.durations import seconds
from penstock.operate.protocol import Stop, Stopped

# Beyond the time for draining: processes are to end, too.
_GRACE_S = 30.0


def command(
    flow: FlowReference = None,
    timeout: Annotated[str, typer.Option(metavar="TIME", help="How long draining may take.")] = "60 s",
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON object.")] = False,
) -> None:
    """Let the sources of a flow end, drain it, commit, and say what was drained; exit code 1 if not."""
    console = Console(stderr=True)
    with user_errors(console):
        timeout_s = seconds(timeout)
        with console.status("draining"):
            greeting, answer = asked(flow, Stop(timeout_s=timeout_s), console, timeout_s + _GRACE_S)
    assert isinstance(answer, Stopped)
    if as_json:
        print(json.dumps({"flow": greeting.flow, "run": greeting.run} | msgspec.to_builtins(answer)))
    else:
        Console().print(f"{greeting.flow}: {answer.words}", markup=False, highlight=False, soft_wrap=True)
