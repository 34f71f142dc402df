"""`penstock demo`: see it run."""

from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console

from penstock.apps.demo import demo
from penstock.cli.errors import FAILED, user_errors


def command(
    seconds: Annotated[float, typer.Option(help="Length of the load.")] = 50.0,
    picture: Annotated[Path, typer.Option(help="Where to write the picture.")] = Path(
        "penstock-demo/primetest.png"
    ),
    dashboard: Annotated[
        str | None,
        typer.Option(metavar="[HOST:]PORT", help="Show the flow in a browser; loopback without a host."),
    ] = None,
) -> None:
    """PrimeTest on real Spark for about a minute: live table, summary, picture; exit 1 if items are lost."""
    with user_errors(Console(stderr=True)):
        outcome = demo(seconds, picture.resolve(), Console(), dashboard=dashboard)
    if outcome.lost or outcome.duplicated:
        raise typer.Exit(FAILED)
