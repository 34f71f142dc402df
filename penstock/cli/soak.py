"""`penstock soak`: an hour of load with random kills, and whether anything is lost or grows."""

import random
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console

from penstock.cli.errors import FAILED, user_errors
from penstock.durations import seconds
from penstock.extras import require

_SEEDS = 1_000_000


def command(
    limit: Annotated[str, typer.Option("--for", metavar="TIME", help="How long.")] = "1 h",
    seed: Annotated[
        int | None, typer.Option(help="Kills follow from it; drawn and shown if left out.")
    ] = None,
    trace: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE", help="CSV of a real load, with timestamp and value; a week of it is used."
        ),
    ] = None,
    out: Annotated[Path, typer.Option(help="Directory for the result, the samples and the picture.")] = Path(
        "soak"
    ),
    into: Annotated[
        Path | None, typer.Option(metavar="PAGE", help="Markdown page that takes checks and picture in.")
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="One JSON object, as of a bench.")] = False,
) -> None:
    """Kill workers and executors at random under a real load; exit code 1 if a check fails."""
    console = Console(stderr=True)

    def say(line: str) -> None:
        console.print(line, markup=False, highlight=False, soft_wrap=True)

    with user_errors(console):
        require("matplotlib", "report", "penstock soak")
        seconds_s = seconds(limit)
        from penstock.faults.soak import Soak, soak
        from penstock.faults.soak_document import keep, write_page
        from penstock.faults.soak_load import made_up, traced

        if trace is None:
            say("no --trace: the load is made up, days and nights with bursts")
        schedule = made_up(seconds_s) if trace is None else traced(trace, seconds_s)
        load = "a made-up load" if trace is None else f"the trace {trace.name}"
    about = Soak(random.randrange(_SEEDS) if seed is None else seed, seconds_s, load)
    result, entries = soak(about, schedule, say)
    keep(about, result, entries, out)
    if into is not None:
        write_page(out, into)
    if as_json:
        print(result.to_json(), flush=True)
    else:
        result.show(Console())
    if not result.ok:
        raise typer.Exit(FAILED)
