"""`penstock faults`: make faults, and check that nothing is lost, doubled, reordered or left behind."""

import random
from typing import Annotated

import typer
from rich.console import Console
from rich.table import Table

from penstock.cli.errors import user_errors

FAILED = 1
_SEEDS = 1_000_000


def command(
    names: Annotated[
        list[str] | None, typer.Argument(metavar="[ROW]...", help="Rows of the table; all if left out.")
    ] = None,
    only: Annotated[
        list[str] | None, typer.Option("--only", metavar="ROW", help="The same; may be repeated.")
    ] = None,
    seed: Annotated[
        int | None, typer.Option(help="The times of faults follow from it; drawn and shown if left out.")
    ] = None,
    repeat: Annotated[int, typer.Option(min=1, help="Trials of each row.")] = 1,
    as_json: Annotated[bool, typer.Option("--json", help="One JSON object per row, as of a bench.")] = False,
    list_rows: Annotated[bool, typer.Option("--list", help="Only show the rows.")] = False,
) -> None:
    """Run trials of the fault table; exit code 1 if a check fails."""
    from penstock.faults.run import run_rows
    from penstock.faults.table import find

    console = Console(stderr=True)
    with user_errors(console):
        rows = find([*(names or ()), *(only or ())])
    if list_rows:
        shown = Table("row", "where", "fault")
        for row in rows:
            shown.add_row(row.name, row.where, row.about)
        Console().print(shown)
        return
    chosen = random.randrange(_SEEDS) if seed is None else seed

    def say(line: str) -> None:
        console.print(line, markup=False, highlight=False, soft_wrap=True)

    say(f"{len(rows)} rows, {repeat} trials of each, seed {chosen}")
    ok = True
    for ran in run_rows(rows, chosen, repeat, say):
        result = ran.result()
        ok = ok and result.ok
        if as_json:
            print(result.to_json(), flush=True)
        else:
            result.show(Console())
    if not ok:
        raise typer.Exit(FAILED)
