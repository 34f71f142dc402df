"""`penstock graph`: the picture of a flow, without starting it."""

from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console

from penstock.cli.errors import user_errors
from penstock.cli.flow_options import Options, Target
from penstock.cli.target import load_flow
from penstock.extras import require


def command(
    target: Target,
    out: Annotated[Path, typer.Option(help="The picture to write; .svg or .png.")],
    options: Options = None,
) -> None:
    """Draw layers, tasks, streams with their wirings, and constraints."""
    with user_errors(Console(stderr=True)):
        require("matplotlib", "report", "penstock graph")
        from penstock.report.graph import draw_graph

        draw_graph(load_flow(target, options or ()).graph(), out)
        typer.echo(out)
