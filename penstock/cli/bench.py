"""`penstock bench`: measure, and hold the figures against their bars."""

from collections.abc import Iterable
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console

from penstock.bench.against import TURNS
from penstock.bench.harness import Effort, Result
from penstock.bench.registry import BENCHES, find
from penstock.bench.telling import told
from penstock.cli.bench_against import compare
from penstock.cli.completion import benches
from penstock.cli.errors import FAILED, user_errors


def command(
    names: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="[NAME]...", help=f"Of {', '.join(BENCHES)}; all if left out.", autocompletion=benches
        ),
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="One JSON object per bench.")] = False,
    quick: Annotated[bool, typer.Option("--quick", help="Under a minute each, and less certain.")] = False,
    only: Annotated[
        list[str] | None,
        typer.Option(
            "--only",
            metavar="EXPERIMENT",
            help="A part of a bench that has some: control, state, kafka ...",
        ),
    ] = None,
    against: Annotated[
        Path | None,
        typer.Option(
            "--against", metavar="CHECKOUT", help="Compare with the engine of another checkout, in turn."
        ),
    ] = None,
    turns: Annotated[
        int | None,
        typer.Option("--turns", min=1, help=f"Quick turns of each, with --against; {TURNS} if left out."),
    ] = None,
) -> None:
    """Run benches; exit code 1 if a check fails."""
    console = Console(stderr=True)
    if against is None:
        if turns is not None:
            raise typer.BadParameter("goes with --against only", param_hint="--turns")
        with user_errors(console):
            chosen = {name: find(name, only or ()) for name in names or BENCHES}
        effort = Effort.QUICK if quick else Effort.FULL
        each = (chosen[name](effort) for name in told(chosen, "bench {}".format))
        ok = _shown(each, as_json=as_json)
    else:
        if only:
            raise typer.BadParameter(
                "is for bench control, which is not compared with --against", param_hint="--only"
            )
        with user_errors(console):
            ok = _shown(compare(names or (), against, turns or TURNS, console), as_json=as_json)
    if not ok:
        raise typer.Exit(FAILED)


def _shown(results: Iterable[Result], *, as_json: bool) -> bool:
    """Each as soon as it is there; False if a check failed."""
    ok = True
    for result in results:
        ok = ok and result.ok
        if as_json:
            print(result.to_json(), flush=True)
        else:
            result.show(Console())
    return ok
