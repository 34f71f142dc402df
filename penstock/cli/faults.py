"""`penstock faults`: make faults, and check that nothing is lost, doubled, reordered or left behind."""

import random
from collections.abc import Sequence
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.console import Console
from rich.table import Table

from penstock.cli.errors import FAILED, user_errors

if TYPE_CHECKING:
    from penstock.faults.row import Row

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
    out: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="Keep the results there, JSON lines; rows that are not run stay."),
    ] = None,
    into: Annotated[
        Path | None,
        typer.Option(metavar="PAGE", help="Markdown page that takes the table of the results in --out in."),
    ] = None,
    no_run: Annotated[bool, typer.Option("--no-run", help="Only write the page anew.")] = False,
    list_rows: Annotated[bool, typer.Option("--list", help="Only show the rows.")] = False,
) -> None:
    """Run trials of the fault table; exit code 1 if a check fails.

    SIGTERM ends it once the trials that run are over.
    """
    from penstock.faults.document import read, write_table
    from penstock.faults.table import ROWS, find

    console = Console(stderr=True)
    with user_errors(console):
        rows = find([*(names or ()), *(only or ())])
    if list_rows:
        shown = Table("row", "where", "fault")
        for row in rows:
            shown.add_row(row.name, row.where, row.about)
        Console().print(shown)
        return
    if (into is not None or no_run) and out is None:
        raise typer.BadParameter("needs the file of results, --out", param_hint="--into")
    ok = True
    if not no_run:
        ok = _run(rows, random.randrange(_SEEDS) if seed is None else seed, repeat, as_json, out, console)
    if into is not None and out is not None:
        write_table(read(out), list(ROWS), into)
    if not ok:
        raise typer.Exit(FAILED)


def _run(
    rows: Sequence["Row"], seed: int, repeat: int, as_json: bool, out: Path | None, console: Console
) -> bool:
    """All trials; False if a check failed."""
    from penstock.faults.document import keep
    from penstock.faults.run import run_rows
    from penstock.termination import terminated_as_an_exit

    def say(line: str) -> None:
        console.print(line, markup=False, highlight=False, soft_wrap=True)

    say(f"{len(rows)} rows, {repeat} trials of each, seed {seed}")
    ok = True
    with terminated_as_an_exit(), closing(run_rows(rows, seed, repeat, say)) as all_ran:
        for ran in all_ran:
            result = ran.result()
            ok = ok and result.ok
            if out is not None:
                keep(result, out)
            if as_json:
                print(result.to_json(), flush=True)
            else:
                result.show(Console())
    return ok
