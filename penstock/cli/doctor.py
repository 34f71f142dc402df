"""`penstock doctor`: what keeps flows from running here, and how to mend it."""

import json
from dataclasses import asdict
from typing import Annotated

import typer
from rich.console import Console
from rich.table import Table
from rich.text import Text

from penstock.cli.errors import FAILED
from penstock.doctor.examine import examine
from penstock.doctor.finding import Finding

_STYLES = {"ok": "green", "doubtful": "yellow", "wrong": "red"}


def command(
    as_json: Annotated[bool, typer.Option("--json", help="One JSON object per check.")] = False,
) -> None:
    """Check Python, Java, Spark, the bridge and the machine; exit code 1 if something is wrong."""
    findings = examine()
    if as_json:
        for finding in findings:
            print(json.dumps(asdict(finding)))
    else:
        _show(findings, Console())
    if any(finding.state == "wrong" for finding in findings):
        raise typer.Exit(FAILED)


def _show(findings: list[Finding], console: Console) -> None:
    table = Table("check", "", "found", "how to mend it")
    for finding in findings:
        state = Text(finding.state, style=_STYLES[finding.state])
        table.add_row(finding.what, state, finding.found, finding.remedy or "")
    console.print(table)
    bad = [finding.what for finding in findings if finding.state == "wrong"]
    said = f"wrong: {', '.join(bad)}" if bad else "flows can run here"
    console.print(said, style="red" if bad else "green", markup=False, highlight=False)
