"""`penstock bench`: measure, and hold the figures against their bars."""

from typing import Annotated

import typer
from rich.console import Console

from penstock.bench.harness import Effort
from penstock.bench.registry import BENCHES, find
from penstock.cli.errors import user_errors

FAILED = 1


def command(
    names: Annotated[
        list[str] | None,
        typer.Argument(metavar="[NAME]...", help=f"Of {', '.join(BENCHES)}; all if left out."),
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="One JSON object per bench.")] = False,
    quick: Annotated[bool, typer.Option("--quick", help="Under a minute each, and less certain.")] = False,
    only: Annotated[
        list[str] | None, typer.Option("--only", metavar="EXPERIMENT", help="A part of bench control.")
    ] = None,
) -> None:
    """Run benches; exit code 1 if a check fails."""
    with user_errors(Console(stderr=True)):
        benches = [find(name, only or ()) for name in names or BENCHES]
    failed = False
    for bench in benches:
        result = bench(Effort.QUICK if quick else Effort.FULL)
        failed = failed or not result.ok
        if as_json:
            print(result.to_json(), flush=True)
        else:
            result.show(Console())
    if failed:
        raise typer.Exit(FAILED)
