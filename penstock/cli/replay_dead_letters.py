"""`penstock replay-dead-letters`: items that failed enter a flow again, at the task where they failed."""

from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console

import penstock
from penstock.cli.errors import FAILED, tell_error, user_errors
from penstock.cli.flow_options import Options, Target
from penstock.cli.target import load_flow


def command(
    target: Target,
    options: Options = None,
    dead_letters: Annotated[
        Path | None,
        typer.Option(
            help="Directory of the dead letters, or one of its files; dead_letters/FLOW if left out."
        ),
    ] = None,
    task: Annotated[str | None, typer.Option(help="Only the letters of this task.")] = None,
    master: Annotated[
        str | None, typer.Option(help="Spark master; local with enough slots if left out.")
    ] = None,
) -> None:
    """Play dead letters back on Spark: each item enters the flow at the task where it failed.

    Letters are marked as replayed when everything has reached the sinks; those that fail again are letters
    again. Stop the flow itself first: both would write to its sinks.
    """
    console = Console(stderr=True)

    def say(line: str) -> None:
        console.print(line, markup=False, highlight=False, soft_wrap=True)

    with user_errors(console):
        flow = load_flow(target, options or ())
        try:
            replayed = penstock.replay_dead_letters(
                flow, dead_letters, task=task, master=master, on_notice=say
            )
        except penstock.JobFailed as error:
            tell_error(
                console, f"{error}; its letters are not marked as replayed: they will be played back again"
            )
            raise typer.Exit(FAILED) from None
    for one in replayed:
        passed_over = f"; {one.passed_over:,} hold no item and were passed over" if one.passed_over else ""
        say(f"{one.task}: {one.letters:,} letters replayed, {one.failed_again:,} failed again{passed_over}")
