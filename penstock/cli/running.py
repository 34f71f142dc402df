"""Commands to a flow that runs: found by what the user typed, asked, and what it refuses told."""

from typing import Annotated

import typer
from rich.console import Console

from penstock.cli.completion import running_flows
from penstock.cli.errors import BAD_INPUT, FAILED, tell_error
from penstock.operate.client import ANSWER_S, Call, chosen, find
from penstock.operate.protocol import Answer, Greeting, Refused, Request

FlowReference = Annotated[
    str | None,
    typer.Argument(
        metavar="[FLOW]",
        help="A flow that runs: its name, the pid of its driver, or the beginning of its run; see"
        " `penstock ps`. The only one if left out.",
        autocompletion=running_flows,
    ),
]


def asked(
    reference: str | None, request: Request, console: Console, timeout_s: float = ANSWER_S
) -> tuple[Greeting, Answer]:
    """The answer of the flow that is meant, and who it is; a refusal ends the command."""
    found = find()
    flow = chosen(reference, found)
    for problem in found.problems:
        tell_error(console, problem)
    with Call(flow.path) as call:
        answer = call.ask(request, timeout_s)
    if isinstance(answer, Refused):
        tell_error(console, answer.why)
        raise typer.Exit(FAILED if answer.failed else BAD_INPUT)
    return flow.greeting, answer
