"""`penstock list`: what there is by name."""

import ast
import json
from collections.abc import Mapping
from enum import StrEnum
from importlib.util import find_spec
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console
from rich.table import Table

from penstock.apps.registry import APPS
from penstock.bench.registry import BENCHES
from penstock.policy.registry import policy_modules


class Kind(StrEnum):
    """Of what has a name."""

    APPLICATIONS = "applications"
    POLICIES = "policies"
    BENCHES = "benches"


_USE = {
    Kind.APPLICATIONS: "penstock run NAME",
    Kind.POLICIES: "penstock run FLOW --policy NAME",
    Kind.BENCHES: "penstock bench NAME",
}


def command(
    kind: Annotated[Kind | None, typer.Argument(help="All of them if left out.", metavar="[KIND]")] = None,
    as_json: Annotated[bool, typer.Option("--json", help="One JSON object per name.")] = False,
) -> None:
    """List applications, policies and benches, each with a line of what it is."""
    console = Console()
    for one in Kind if kind is None else [kind]:
        known = {name: about(module) for name, module in modules(one).items()}
        if as_json:
            for name, text in known.items():
                print(json.dumps({"kind": one.value, "name": name, "about": text}))
            continue
        table = Table("name", "what it is", title=f"{one.value}: {_USE[one]}", title_justify="left")
        for name, text in known.items():
            table.add_row(name, text)
        console.print(table)


def modules(kind: Kind) -> Mapping[str, str]:
    """Where each is, by its name."""
    if kind is Kind.APPLICATIONS:
        return {name: place.partition(":")[0] for name, place in APPS.items()}
    return policy_modules() if kind is Kind.POLICIES else BENCHES


def about(module: str) -> str:
    """The first paragraph of a module's text, which is read and not run: it may need Spark or an extra."""
    spec = find_spec(module)
    if spec is None or spec.origin is None:
        return ""
    text = ast.get_docstring(ast.parse(Path(spec.origin).read_text())) or ""
    return " ".join(text.partition("\n\n")[0].split())
