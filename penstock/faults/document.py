"""From results to a page: the table of rows with their figures, between two marks of a file."""

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import msgspec

from penstock.bench.harness import Result, median
from penstock.report.markdown import markdown_table, put_between

BEGIN, END = "<!-- penstock faults: begin -->", "<!-- penstock faults: end -->"
HEADER = ("row", "fault", "trials", "lost", "twice", "bound holds again after", "")
UNKNOWN = "-"


class Reported(msgspec.Struct, frozen=True):
    """A result as `--json` prints it, as far as a page needs it."""

    bench: str
    figures: dict[str, Any]
    checks: list[dict[str, Any]]
    ok: bool

    @property
    def row(self) -> str:
        return self.bench.removeprefix("faults ")


def keep(result: Result, path: Path) -> None:
    """Put a result into a file of JSON lines, in the place of an earlier one of the same row."""
    others = [line for line in _lines(path) if msgspec.json.decode(line, type=Reported).bench != result.bench]
    path.write_text("\n".join([*others, result.to_json()]) + "\n")


def read(path: Path) -> list[Reported]:
    """The results in a file of JSON lines."""
    return [msgspec.json.decode(line, type=Reported) for line in _lines(path)]


def write_table(results: Iterable[Reported], order: Sequence[str], path: Path) -> None:
    """Put the table into the page, rows in the order of the fault table, those without a result too."""
    known = {result.row: result for result in results}
    cells = [_cells(known[name]) if name in known else _without(name) for name in order]
    seeds = sorted({str(result.figures["seed"]) for result in known.values()})
    took_s = sum(trial.get("took_s", 0.0) for result in known.values() for trial in _trials(result))
    about = "Not measured yet."
    if known:
        about = f"Seed {', '.join(seeds)}; {took_s / 60:.0f} min of trials, some of them side by side."
    put_between(path, BEGIN, END, f"{markdown_table(HEADER, cells)}\n\n{about}\n")


def _cells(result: Reported) -> list[str]:
    name, about = f"`{result.row}`", str(result.figures["about"])
    if "skipped" in result.figures:
        return [name, about, "0", UNKNOWN, UNKNOWN, UNKNOWN, f"skipped: {result.figures['skipped']}"]
    trials = _trials(result)
    failed = [str(check["name"]) for check in result.checks if not check["ok"]]
    verdict = f"**missed**: {', '.join(failed)}" if failed else "ok"
    return [name, about, str(len(trials)), _lost(result), _twice(trials), _recovered(result), verdict]


def _without(name: str) -> list[str]:
    return [f"`{name}`", UNKNOWN, "0", UNKNOWN, UNKNOWN, UNKNOWN, "not measured"]


def _trials(result: Reported) -> list[dict[str, Any]]:
    return list(result.figures.get("trials", []))


def _lost(result: Reported) -> str:
    found = [check["value"] for check in result.checks if check["name"] == "lost"]
    return UNKNOWN if not found or found[0] is None else f"{found[0]:.0f}"


def _twice(trials: Sequence[dict[str, Any]]) -> str:
    """The most of all trials, and of how many items."""
    counted = [trial for trial in trials if "duplicated" in trial]
    if not counted:
        return UNKNOWN
    worst = max(counted, key=lambda trial: trial["duplicated"])
    return "0" if not worst["duplicated"] else f"{worst['duplicated']:,} of {worst['items']:,}"


def _recovered(result: Reported) -> str:
    """The median, the longest if they differ, and the bar."""
    times = [time for time in result.figures.get("recovered_s", []) if time is not None]
    bars = [check["bar"] for check in result.checks if check["name"].startswith("bound holds again")]
    if not times or len(times) < len(_trials(result)):
        return "never" if bars else UNKNOWN
    longest = "" if max(times) == min(times) else f" (at most {max(times):g} s)"
    bar = f", bar {bars[0]:g} s" if bars else ""
    return f"{median(times):g} s{longest}{bar}"


def _lines(path: Path) -> list[str]:
    return path.read_text().splitlines() if path.exists() else []
