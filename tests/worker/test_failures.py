"""What becomes of an item that cannot be processed: counted, written down, or the end of the flow."""

import json
from pathlib import Path
from typing import Any

import pytest

from penstock.flow.graph import OnError
from penstock.worker.failures import Failures


class StoppedError(Exception):
    """In a worker, reporting a failure never returns."""


class Ledger:
    """Takes the reports that a worker would send."""

    def __init__(self) -> None:
        self.reports: list[dict[str, Any]] = []

    def fail(self, report: dict[str, Any]) -> None:
        self.reports.append(report)
        raise StoppedError

    @property
    def problem(self) -> str:
        (report,) = self.reports
        failed = report["failed"]
        assert (failed["task"], failed["replica"]) == ("parse", 3)
        return str(failed["problem"])


def failures(policy: OnError, place: Path, ledger: Ledger | None = None) -> Failures:
    return Failures("parse", 3, policy, str(place / "letters"), (ledger or Ledger()).fail)


def divided() -> ZeroDivisionError:
    try:
        1 / 0  # noqa: B018 - for its traceback
    except ZeroDivisionError as problem:
        return problem
    raise AssertionError


def test_fail_names_the_error_the_item_and_the_line(tmp_path: Path) -> None:
    ledger = Ledger()
    with pytest.raises(StoppedError):
        failures("fail", tmp_path, ledger).item_failed({"n": 0}, divided())
    assert ledger.problem.startswith(
        "ZeroDivisionError: division by zero\nitem: {'n': 0}\nTraceback (most recent"
    )
    assert "1 / 0" in ledger.problem


def test_skip_counts(tmp_path: Path) -> None:
    made = failures("skip", tmp_path)
    made.item_failed(0, divided())
    made.item_killed(1)
    assert (made.skipped, made.dead_lettered) == (2, 0)
    assert not (tmp_path / "letters").exists()


def test_dead_letters_keep_item_error_and_traceback(tmp_path: Path) -> None:
    made = failures("dead_letter", tmp_path)
    made.item_failed("zwölf\n", divided())
    made.item_killed(b"bad")
    lines = (tmp_path / "letters" / "parse-3.jsonl").read_text(encoding="utf-8").splitlines()
    first, second = map(json.loads, lines)
    assert "1 / 0" in first.pop("traceback")
    assert first == {
        "task": "parse",
        "replica": 3,
        "item": "'zwölf\\n'",
        "error": "ZeroDivisionError: division by zero",
    }
    assert second["item"] == "b'bad'"
    assert second["error"] == "this item has killed its worker process three times"
    assert (made.skipped, made.dead_lettered) == (0, 2)


def test_a_dead_letter_that_cannot_be_written_is_a_failure(tmp_path: Path) -> None:
    (tmp_path / "letters").write_text("a file is in the way")
    ledger = Ledger()
    made = failures("dead_letter", tmp_path, ledger)
    with pytest.raises(StoppedError):
        made.item_failed(0, divided())
    place = tmp_path / "letters" / "parse-3.jsonl"
    assert ledger.problem.startswith(
        f"ZeroDivisionError: division by zero\nitem: 0\nand its dead letter could not be written to {place}: "
    )
    assert made.dead_lettered == 0


@pytest.mark.parametrize("policy", ["fail", "skip", "dead_letter"])
def test_an_error_outside_any_item_is_always_fatal(policy: OnError, tmp_path: Path) -> None:
    ledger = Ledger()
    with pytest.raises(StoppedError):
        failures(policy, tmp_path, ledger).broken("open()", divided())
    assert ledger.problem.startswith(
        "open() raised ZeroDivisionError: division by zero\nTraceback (most recent"
    )


def test_an_item_that_kills_under_fail_is_named(tmp_path: Path) -> None:
    ledger = Ledger()
    with pytest.raises(StoppedError):
        failures("fail", tmp_path, ledger).item_killed("x")
    assert ledger.problem == "this item has killed its worker process three times\nitem: 'x'\n"


class Shy:
    def __repr__(self) -> str:
        raise ValueError("not today")


@pytest.mark.parametrize(
    ("item", "shown"),
    [
        (Shy(), "<Shy whose repr raised ValueError('not today')>"),
        ("x" * 5000, "'" + "x" * 1999 + "... (5002 characters)"),
    ],
)
def test_items_are_shown_within_reason(item: object, shown: str, tmp_path: Path) -> None:
    ledger = Ledger()
    with pytest.raises(StoppedError):
        failures("fail", tmp_path, ledger).item_killed(item)
    assert ledger.problem.split("\n")[1] == f"item: {shown}"
