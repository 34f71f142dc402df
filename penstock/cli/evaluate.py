"""`penstock evaluate`: the papers' applications on Spark, and a document with their figures."""

from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console
from rich.table import Table

import penstock
from penstock.cli.errors import FAILED, tell_error, user_errors
from penstock.control.recording import RecordingError
from penstock.evaluation.registry import APPLICATIONS, find_trials
from penstock.extras import require


def command(
    only: Annotated[
        list[str] | None,
        typer.Option(
            metavar="NAME",
            help=f"Run only {', '.join(APPLICATIONS)}, or a run such as primetest-cpu. May be repeated.",
        ),
    ] = None,
    out: Annotated[
        Path, typer.Option(help="Directory of the recordings; those of earlier runs are used too.")
    ] = Path("evaluation"),
    into: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            help="Markdown file that takes the figures in, with pictures/ beside it; without it,"
            " evaluation.md in the directory.",
        ),
    ] = None,
    no_run: Annotated[bool, typer.Option("--no-run", help="Only write the document anew.")] = False,
) -> None:
    """Run the evaluation, about half an hour on two cores; exit code 1 if a check is missed."""
    console = Console(stderr=True)
    with user_errors(console):
        require("matplotlib", "report", "penstock evaluate")
        trials = [trial for name in only or APPLICATIONS for trial in find_trials(name)]
        from penstock.evaluation.document import checks_of, checks_table, measured, parts_in, write_document

        if not no_run:
            from penstock.evaluation.progress import run_trials
            from penstock.evaluation.trial import TrialFailed

            try:
                run_trials(trials, out, console)
            except (TrialFailed, penstock.JobFailed) as error:
                tell_error(console, str(error))
                raise typer.Exit(FAILED) from None
        parts = parts_in(out)
        if not measured(parts):
            raise RecordingError(
                f"{out}: holds no complete set of recordings; `penstock evaluate` makes them"
            )
        path = into or out / "evaluation.md"
        write_document(parts, path)
    console.print(f"written: {path}", markup=False, highlight=False, soft_wrap=True)
    checks = checks_of(parts)
    table = checks_table(checks)
    shown = Table(*table.header)
    for row in table.rows:
        shown.add_row(*row)
    Console().print(shown)
    if not all(check.ok for check in checks):
        raise typer.Exit(FAILED)
