"""`penstock report`: a page and pictures of recorded runs."""

from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console

from penstock.cli.errors import user_errors
from penstock.extras import require


def command(
    recordings: Annotated[
        list[Path],
        typer.Argument(
            metavar="RECORDING...",
            help="Files of --recording of `penstock run` or `penstock simulate`; several are compared.",
        ),
    ],
    out: Annotated[Path, typer.Option(help="Directory for the page and the pictures.")],
) -> None:
    """Write one HTML page with everything in it, and its pictures as PNG files beside it."""
    with user_errors(Console(stderr=True)):
        require("matplotlib", "report", "penstock report")
        from penstock.report.report import write_report

        typer.echo(write_report(recordings, out))
