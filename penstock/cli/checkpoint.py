"""`penstock checkpoint`: the commits of a checkpoint, whether they are whole, copies, fewer of them."""

import json
import shutil
import tempfile
from datetime import datetime
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console
from rich.table import Table

from penstock.cli.at_hand import at_hand, elsewhere, held, is_elsewhere, path_of
from penstock.cli.errors import FAILED, user_errors
from penstock.epochs.batches import remove_earlier
from penstock.epochs.boundary import KEEP, epoch_of, keep_commits
from penstock.epochs.checking import check as check_files
from penstock.epochs.commits import Commit, commits_of, keys_of, storage_of, usable_commits
from penstock.epochs.copying import ASIDE, copy_checkpoint
from penstock.epochs.errors import LogError
from penstock.epochs.retention import retain
from penstock.flow.errors import FlowError
from penstock.sizes import format_size

app = typer.Typer(help="Look at a checkpoint, check, copy or prune it.", no_args_is_help=True)

Place = Annotated[
    str, typer.Argument(help="The directory of a checkpoint, or its address, as hdfs://HOST/DIRECTORY.")
]


@app.command("list")
def list_commits(
    checkpoint: Place,
    as_json: Annotated[bool, typer.Option("--json", help="Print a JSON object for each commit.")] = False,
) -> None:
    """Show the commits from which a flow can start, the newest last; keys are unpickled to be counted."""
    with user_errors(Console(stderr=True)):
        try:
            with at_hand(checkpoint) as place:
                known = commits_of(place)
                usable = [commit for commit in known if commit.problem is None]
                rows = [(commit, keys_of(place, commit)) for commit in usable]
                asides = _asides(place)
        except LogError as problem:
            raise FlowError(str(problem)) from None
        if as_json:
            for commit, keys in rows:
                typer.echo(json.dumps(_row(commit, keys)))
            return
        console = Console()
        console.print(_table(rows))
        if not usable or usable[-1] is not known[-1]:
            raise FlowError(f"the newest commit, {known[-1].number}, cannot be used: {known[-1].problem}")
        for aside in asides:
            console.print(f"put aside: {aside}", soft_wrap=True, highlight=False)


@app.command("check")
def check(checkpoint: Place) -> None:
    """Read all files that commits need: exit code 1 and words if one is missing, torn, damaged or foreign."""
    with user_errors(Console(stderr=True)):
        try:
            with at_hand(checkpoint) as place:
                found = check_files(place)
        except LogError as refused:
            raise FlowError(str(refused)) from None
    for problem in found.problems:
        typer.echo(problem)
    whole = ", ".join(str(commit.number) for commit in found.commits) or "none"
    typer.echo(f"commits that are whole: {whole}")
    if found.unused:
        typer.echo(f"files that no commit needs: {len(found.unused)} (a start, or prune, removes them)")
    if found.problems:
        raise typer.Exit(FAILED)


@app.command("copy")
def copy(
    checkpoint: Place,
    target: Annotated[str, typer.Argument(help="A directory, or an address, that is not there yet.")],
    commit: Annotated[
        int | None, typer.Option(metavar="NUMBER", help="The last commit to copy; the newest if left out.")
    ] = None,
) -> None:
    """Copy a checkpoint, also while its flow runs: completely, or not at all."""
    with user_errors(Console(stderr=True)):
        try:
            with at_hand(checkpoint) as place:
                copied = _copied(place, target, commit)
        except LogError as problem:
            raise FlowError(str(problem)) from None
    typer.echo(f"{target} has the commits {', '.join(map(str, copied))}")


@app.command("prune")
def prune(
    checkpoint: Place,
    keep: Annotated[
        int,
        typer.Option(min=1, help="How many of the newest commits to keep; what they go on from stays, too."),
    ] = KEEP,
    aside: Annotated[bool, typer.Option("--aside", help="Remove also what was put aside.")] = False,
) -> None:
    """Remove older commits and files that nobody needs; refused while a flow runs there."""
    with user_errors(Console(stderr=True)), held(checkpoint, "penstock checkpoint prune"):
        try:
            with at_hand(checkpoint) as place:
                before = _bytes_in(place)
                _prune(place, keep)
                for left in _asides(place) if aside else []:
                    shutil.rmtree(left)
                if is_elsewhere(checkpoint):
                    elsewhere(checkpoint).follow(place)
                left_over = usable_commits(place)
                freed = before - _bytes_in(place)
        except LogError as problem:
            raise FlowError(str(problem)) from None
    numbers = ", ".join(str(commit.number) for commit in left_over)
    typer.echo(f"commits that are left: {numbers}; {format_size(freed)} are free again")


def _copied(place: Path, target: str, commit: int | None) -> list[int]:
    """From this machine to wherever it is wanted."""
    if not is_elsewhere(target):
        return copy_checkpoint(place, path_of(target), commit=commit)
    with tempfile.TemporaryDirectory(prefix="penstock-copied-") as scratch:
        copied = copy_checkpoint(place, Path(scratch) / "checkpoint", commit=commit)
        elsewhere(target).bring(Path(scratch) / "checkpoint")
    return copied


def _prune(checkpoint: Path, keep: int) -> None:
    known = commits_of(checkpoint)
    newest = known[-1]
    if newest.problem is not None:
        raise LogError(
            f"the newest commit, {newest.number}, cannot be used, so nothing is removed: {newest.problem}"
        )
    kept = [commit for commit in known if commit.problem is None][-keep:]
    storage = storage_of(checkpoint)
    if newest.is_marked:
        states = [commit.state for commit in kept if commit.state is not None]
        origins = [state.origin for state in states if state.origin is not None]
        retain(storage, origins, [state.entry for state in states], is_still=True)
        return
    if storage.names("log"):
        keep_commits(storage, [epoch_of(commit.number) for commit in kept], is_still=True)
    remove_earlier(checkpoint, kept[0].number - 1)  # Spark looks at the one before its last, too


def _asides(checkpoint: Path) -> list[Path]:
    return sorted(path for path in (checkpoint / ASIDE).glob("*") if not path.name.startswith("."))


def _bytes_in(checkpoint: Path) -> int:
    """On the disk: a file with two names is there once."""
    found = {
        (s.st_dev, s.st_ino): s.st_size
        for s in (file.stat() for file in checkpoint.rglob("*") if file.is_file())
    }
    return sum(found.values())


def _table(rows: list[tuple[Commit, dict[str, int]]]) -> Table:
    kind = "epoch" if rows and rows[0][0].is_marked else "batch"
    table = Table(title=f"commits, by the number of their {kind}")
    for column in ("commit", "time", "state", "tasks with state", "keys"):
        table.add_column(column, justify="right" if column in ("commit", "state", "keys") else "left")
    for commit, keys in rows:
        tasks = ", ".join(f"{task} x {replicas}" for task, replicas in commit.replicas.items())
        size = format_size(commit.size)
        table.add_row(str(commit.number), _time(commit), size, tasks or "none", f"{sum(keys.values()):,}")
    return table


def _row(commit: Commit, keys: dict[str, int]) -> dict[str, object]:
    tasks = {name: {"replicas": count, "keys": keys[name]} for name, count in commit.replicas.items()}
    return {"commit": commit.number, "time": _time(commit), "bytes": commit.size, "tasks": tasks}


def _time(commit: Commit) -> str:
    return datetime.fromtimestamp(commit.time_s).astimezone().isoformat(" ", "seconds")
