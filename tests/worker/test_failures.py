"""What becomes of an item that cannot be processed: counted, written down, or the end of the flow."""

import base64
import json
import pickle
import threading
from pathlib import Path
from typing import Any

import pytest

from penstock.flow.graph import OnError, Task
from penstock.flow.parallelism import fixed
from penstock.flow.record import Metadata
from penstock.worker.context import Context
from penstock.worker.failures import Failures
from penstock.worker.outbox import Outbox

KILLED = "this item has killed its worker process three times: killed by signal 11"


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


def failures(
    policy: OnError, place: Path, ledger: Ledger | None = None, metadata: Metadata | None = None
) -> Failures:
    task = Task("parse", "task", "map", divided, fixed(4), on_error=policy, memory_bytes=200_000_000)
    outbox = Outbox(lambda _: None, 3, with_ids=True)
    outbox.metadata = metadata
    context = Context("flow", "parse", 3, outbox)
    context.input, context.item_id = "source->parse", (1, 2)
    return Failures(task, context, str(place / "letters"), (ledger or Ledger()).fail)


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
    made.item_killed(1, KILLED, "skip")
    assert (made.skipped, made.dead_lettered) == (2, 0)
    assert not (tmp_path / "letters").exists()


def test_dead_letters_keep_item_error_and_traceback(tmp_path: Path) -> None:
    known = Metadata({"trace": b"\x00\xff"}, 1_700_000_000_000, b"twelve")
    made = failures("dead_letter", tmp_path, metadata=known)
    made.item_failed("zwölf\n", divided())
    made.item_killed(b"bad", KILLED, "dead_letter")
    made.result_failed("result", divided())
    lines = (tmp_path / "letters" / "parse-3.jsonl").read_text(encoding="utf-8").splitlines()
    first, second, third = map(json.loads, lines)
    assert pickle.loads(base64.b64decode(first.pop("pickle"))) == "zwölf\n"
    assert "1 / 0" in first.pop("traceback")
    assert first == {
        "task": "parse",
        "replica": 3,
        "item": "'zwölf\\n'",
        "error": "ZeroDivisionError: division by zero",
        "input": "source->parse",
        "id": [1, 2],
        "metadata": {"headers": {"trace": "AP8="}, "timestamp": 1_700_000_000_000, "key": "dHdlbHZl"},
    }
    assert second["item"] == "b'bad'"
    assert second["error"] == KILLED
    assert [third[name] for name in ("item", "pickle", "input", "metadata")] == ["'result'", None, None, None]
    assert (made.skipped, made.dead_lettered) == (0, 3)


def test_an_item_that_cannot_be_pickled_is_a_letter_for_people_only(tmp_path: Path) -> None:
    failures("dead_letter", tmp_path).item_failed(threading.Lock(), divided())
    letter = json.loads((tmp_path / "letters" / "parse-3.jsonl").read_text())
    assert letter["pickle"] is None
    assert letter["item"].startswith("<unlocked _thread.lock")


def test_memory_that_could_not_be_had_names_the_limit(tmp_path: Path) -> None:
    ledger = Ledger()
    with pytest.raises(StoppedError):
        failures("fail", tmp_path, ledger).item_failed("x", MemoryError())
    assert ledger.problem.startswith("MemoryError, far more than its memory=200 MB\nitem: 'x'\n")


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
        failures("fail", tmp_path, ledger).item_killed("x", KILLED, "fail")
    assert ledger.problem == f"{KILLED}\nitem: 'x'\n"


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
        failures("fail", tmp_path, ledger).item_killed(item, KILLED, "fail")
    assert ledger.problem.split("\n")[1] == f"item: {shown}"
