"""`penstock state`: what tasks keep, as a checkpoint has it."""

import json
from collections.abc import Iterable
from typing import Annotated

import typer
from rich.console import Console
from rich.table import Table

from penstock.cli.at_hand import at_hand
from penstock.cli.errors import user_errors
from penstock.epochs.errors import LogError
from penstock.epochs.looking import Kept, Looked, look
from penstock.flow.errors import FlowError
from penstock.sizes import format_size
from penstock.wire.keys import KEY_GROUPS, key_group


def command(
    checkpoint: Annotated[
        str,
        typer.Argument(
            help="The directory of a checkpoint, or its address, as hdfs://HOST/DIRECTORY. Values are"
            " unpickled: look only at those of flows that you trust."
        ),
    ],
    task: Annotated[str | None, typer.Argument(help="A task; all of them, in short, if left out.")] = None,
    key: Annotated[str | None, typer.Argument(help="A key of it, as it is printed.")] = None,
    group: Annotated[
        int | None,
        typer.Option(
            metavar="NUMBER",
            min=0,
            max=KEY_GROUPS - 1,
            help="Only keys of this group: decisions and views name those that have the most items.",
        ),
    ] = None,
    limit: Annotated[int, typer.Option(min=1, help="How many values to show.")] = 100,
    as_json: Annotated[bool, typer.Option("--json", help="Print a JSON object for each value.")] = False,
) -> None:
    """Show the state of tasks in a checkpoint: how much there is, or the values of a task, key or group."""
    with user_errors(Console(stderr=True)):
        try:
            with at_hand(checkpoint) as place:
                found = look(place)
        except LogError as problem:
            raise FlowError(str(problem)) from None
        if task is not None and task not in found.kept:
            raise FlowError(
                f'{checkpoint} has no state of task "{task}"; it has that of {_listed(found.kept)}'
            )
        if task is None and group is None and not as_json:
            Console().print(_summary(found))
            return
        chosen = [one for name in found.kept if task in (None, name) for one in found.kept[name]]
        if key is not None:
            chosen = [one for one in chosen if one.replica is None and key in (str(one.key), repr(one.key))]
            if not chosen:
                raise FlowError(f'{checkpoint} knows no key {key} of task "{task}" after {found.after}')
        if group is not None:
            chosen = [one for one in chosen if one.replica is None and key_group(one.key) == group]
            if not chosen:
                raise FlowError(f"{checkpoint} knows no key of group {group} after {found.after}")
        for one in chosen[:limit]:
            typer.echo(json.dumps(_row(one)) if as_json else _line(one))
        if len(chosen) > limit and not as_json:
            typer.echo(f"and {len(chosen) - limit:,} more; see --limit")


def _summary(found: Looked) -> Table:
    table = Table(title=f"state after {found.after}")
    for column in ("task", "replicas", "keys", "values", "files"):
        table.add_column(column, justify="left" if column == "task" else "right")
    for task, kept in found.kept.items():
        keys = {one.key for one in kept if one.replica is None}
        size = format_size(found.bytes[task])
        table.add_row(task, str(found.replicas[task]), f"{len(keys):,}", f"{len(kept):,}", size)
    return table


def _row(one: Kept) -> dict[str, object]:
    whose = {"key": repr(one.key)} if one.replica is None else {"replica": one.replica}
    return {"task": one.task, **whose, "name": one.name, "value": repr(one.value)}


def _line(one: Kept) -> str:
    whose = repr(one.key) if one.replica is None else f"replica {one.replica}"
    return f"{whose}  {one.name} = {one.value!r}"


def _listed(names: Iterable[str]) -> str:
    return ", ".join(names) or "none"
