"""From recordings to a document: Markdown between two marks of a file, and pictures beside it."""

import textwrap
from collections.abc import Mapping, Sequence
from pathlib import Path

from penstock.bench.harness import Check
from penstock.evaluation.part import Application, Part, Table
from penstock.evaluation.registry import APPLICATIONS, find
from penstock.report.grid import save
from penstock.report.history import read_history
from penstock.report.markdown import markdown_table, put_between

BEGIN, END = "<!-- penstock evaluate: begin -->", "<!-- penstock evaluate: end -->"
PICTURES = "pictures"
LINE = 120


def recording_of(trial: str, directory: Path) -> Path:
    """Where a trial is recorded."""
    return directory / f"{trial}.jsonl"


def parts_in(directory: Path) -> dict[str, Part | None]:
    """The part of every application; None for those not all of whose trials are recorded there."""
    return {name: part_in(find(name), directory) for name in APPLICATIONS}


def part_in(application: Application, directory: Path) -> Part | None:
    """What the recordings of an application show; None if one is missing."""
    recordings = {trial.name: recording_of(trial.name, directory) for trial in application.trials()}
    if not all(path.exists() for path in recordings.values()):
        return None
    return application.part({name: read_history(path) for name, path in recordings.items()})


def write_document(parts: Mapping[str, Part | None], path: Path) -> None:
    """Put the parts between the marks of the file, at its end if it has none; draw their pictures."""
    pictures = path.parent / PICTURES
    pictures.mkdir(parents=True, exist_ok=True)
    for part in measured(parts):
        for picture in part.pictures:
            figure = picture.draw()
            figure.suptitle(f"{picture.caption}, measured on Spark")
            save(figure, pictures / f"{picture.name}.png")
    put_between(path, BEGIN, END, markdown(parts))


def measured(parts: Mapping[str, Part | None]) -> list[Part]:
    """Those that there are."""
    return [part for part in parts.values() if part is not None]


def checks_of(parts: Mapping[str, Part | None]) -> list[Check]:
    """The checks of all parts."""
    return [check for part in measured(parts) for check in part.checks]


def markdown(parts: Mapping[str, Part | None]) -> str:
    """All parts, the checks of all, and what was not measured."""
    blocks = [block for part in measured(parts) for block in _blocks(part)]
    checks = checks_of(parts)
    if checks:
        blocks += ["### Bars", _markdown(checks_table(checks))]
    unknown = [name for name, part in parts.items() if part is None]
    if unknown:
        blocks += [f"Not measured yet: {', '.join(unknown)}."]
    return "\n\n".join(blocks) + "\n"


def checks_table(checks: Sequence[Check]) -> Table:
    """Each bar with what was reached."""
    rows = [
        (
            check.name,
            "not measured" if check.value is None else f"{check.value:.3g}",
            f"{check.op} {check.bar:.3g}",
            "ok" if check.ok else "missed",
        )
        for check in checks
    ]
    return Table(("check", "value", "bar", ""), rows)


def _blocks(part: Part) -> list[str]:
    return [
        f"### {part.title}",
        _filled(part.about),
        *(_markdown(table) for table in part.tables),
        _filled(f"What differs: {part.differs}"),
        *(f"![{picture.caption}]({PICTURES}/{picture.name}.png)" for picture in part.pictures),
    ]


def _filled(text: str) -> str:
    return textwrap.fill(text, LINE, break_long_words=False, break_on_hyphens=False)


def _markdown(table: Table) -> str:
    return markdown_table(table.header, table.rows)
