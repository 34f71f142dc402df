"""`penstock arena`: all policies against each other and against an oracle, in the simulator."""

from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

import msgspec
import typer
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn
from rich.table import Table

from penstock.arena.bouts import Bout, BoutError, Outcome, fight
from penstock.arena.entrants import ablation, create_entrant, curve, known_entrants
from penstock.arena.oracle_cache import default_directory
from penstock.arena.score import Standing
from penstock.arena.traces import DIRECTORY, find_traces
from penstock.arena.workloads import Workload, workloads
from penstock.cli.errors import FAILED, tell_error, user_errors
from penstock.cli.simulate_options import BesideError
from penstock.extras import require

SEEDS = 5


def command(
    policy: Annotated[
        list[str] | None,
        typer.Option(
            metavar="NAME",
            help=f"Who enters: {', '.join(known_entrants())} ('penstock share=0.9' has settings),"
            " or module:Class; all these if not said. May be repeated.",
        ),
    ] = None,
    only: Annotated[
        list[str] | None,
        typer.Option(metavar="WORKLOAD", help="Workloads whose name begins so. May be repeated."),
    ] = None,
    quick: Annotated[
        bool, typer.Option("--quick", help="Smaller workloads, one seed: two minutes on two cores.")
    ] = False,
    seeds: Annotated[
        int | None, typer.Option(min=1, help=f"How many of each; {SEEDS}, or 1 with --quick, if not said.")
    ] = None,
    with_curve: Annotated[
        bool, typer.Option("--curve", help="The policy penstock once for each of several shares to hold.")
    ] = False,
    with_ablation: Annotated[
        bool, typer.Option("--ablation", help="The policy penstock, and once without each of its parts.")
    ] = False,
    set_aside: Annotated[
        bool, typer.Option("--set-aside", help="The random flows that are not run otherwise, alone.")
    ] = False,
    traces: Annotated[Path, typer.Option(metavar="DIR", help="Where traces of real loads are.")] = DIRECTORY,
    cache: Annotated[
        Path | None, typer.Option(metavar="DIR", help="Where plans of the oracle are kept.")
    ] = None,
    out: Annotated[
        Path | None, typer.Option(metavar="DIR", help="Write arena.json and the pictures there.")
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="One JSON object in place of tables.")] = False,
) -> None:
    """Every policy on every workload, against the cheapest replicas that perfect foresight finds."""
    console = Console(stderr=True)
    with user_errors(console):
        if out is not None:
            require("matplotlib", "report", "penstock arena --out")
        entrants = list(dict.fromkeys(policy or known_entrants()))
        if with_curve:
            entrants = [*(one for one in entrants if one != "penstock"), *curve()]
        if with_ablation:
            entrants = [*(policy or ()), *ablation()]
        for name in entrants:
            create_entrant(name)
        rates, skipped = find_traces(traces)
        count = seeds or (1 if quick else SEEDS)
        if set_aside:
            count = max(count, 4)
        found = workloads(quick=quick, seeds=count, traces=rates, aside=set_aside)
        chosen = _chosen(found, only or ())
        for words in skipped:
            console.print(f"skipped: {words}", markup=False, highlight=False, soft_wrap=True)
        try:
            outcome = _fought(chosen, entrants, cache or default_directory(), console)
        except BoutError as error:
            tell_error(console, str(error))
            raise typer.Exit(FAILED) from None
        outcome = msgspec.structs.replace(outcome, skipped=skipped)
        if out is not None:
            _keep(outcome, out, console)
    if as_json:
        typer.echo(_json(outcome))
    else:
        _show(outcome)


def _chosen(found: Sequence[Workload], only: Sequence[str]) -> list[Workload]:
    chosen = [one for one in found if not only or any(one.name.startswith(name) for name in only)]
    for name in only:
        if not any(one.name.startswith(name) for one in found):
            known = "; ".join(one.name for one in found)
            raise BesideError(f"--only: no workload begins with {name!r}; there are {known}")
    return chosen


def _fought(chosen: Sequence[Workload], entrants: Sequence[str], cache: Path, console: Console) -> Outcome:
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
    with Progress(*columns, console=console, transient=True) as progress:
        shown = progress.add_task("runs", total=None)

        def tell(bout: Bout, done: int, whole: int) -> None:
            progress.update(shown, completed=done, total=whole, description=f"{bout.who} on {bout.workload}")

        return fight(chosen, entrants, cache=cache, told=tell)


def _json(outcome: Outcome) -> str:
    whole = {
        "standings": outcome.standings(),
        "summary": outcome.summary(),
        "oracle": outcome.oracle,
        "scores": outcome.scores,
        "skipped": outcome.skipped,
    }
    return msgspec.json.encode(whole).decode()


def _keep(outcome: Outcome, directory: Path, console: Console) -> None:
    from penstock.arena.pictures import draw

    pictures = draw(outcome, directory)
    path = directory / "arena.json"
    path.write_text(_json(outcome) + "\n", encoding="utf-8")
    console.print(
        f"written: {path} and {len(pictures)} pictures", markup=False, highlight=False, soft_wrap=True
    )


def _show(outcome: Outcome) -> None:
    console = Console()
    held = {
        workload: [one.held for one in outcome.oracle if one.workload == workload]
        for workload in dict.fromkeys(one.workload for one in outcome.oracle)
    }
    words = {name: f"{name} (oracle {sum(shares) / len(shares):.0%})" for name, shares in held.items()}
    console.print(_table("every workload", outcome.standings(), words))
    console.print(_table("over all workloads", outcome.summary(), {}))


def _table(title: str, standings: Sequence[Standing], words: dict[str, str]) -> Table:
    table = Table("workload", "policy", title=title)
    for column in ("held", "cost", "CPU", "changes", "overshoot", "longest broken", "runs"):
        table.add_column(column, justify="right")
    before = None
    for one in standings:
        if before not in (None, one.workload):
            table.add_section()
        table.add_row(
            "" if before == one.workload else words.get(one.workload, one.workload),
            one.policy,
            "-" if one.held is None else f"{one.held:.1%}",
            "-" if one.cost is None else f"{one.cost:.2f}",
            "-" if one.cpu is None else f"{one.cpu:.2f}",
            f"{one.changes:.1f}",
            "-" if one.overshoot is None else f"{one.overshoot:.0%}",
            f"{one.longest_broken_s:.0f} s",
            str(one.bouts),
        )
        before = one.workload
    return table
