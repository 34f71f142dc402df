"""`penstock demo`: see it run."""

from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console

from penstock.apps.demo import demo
from penstock.cli.errors import FAILED


def command(
    seconds: Annotated[float, typer.Option(help="Length of the load.")] = 50.0,
    picture: Annotated[Path, typer.Option(help="Where to write the picture.")] = Path(
        "penstock-demo/primetest.png"
    ),
) -> None:
    """PrimeTest on real Spark for about a minute: live table, summary, picture; exit 1 if items are lost."""
    outcome = demo(seconds, picture.resolve(), Console())
    if outcome.lost or outcome.duplicated:
        raise typer.Exit(FAILED)
