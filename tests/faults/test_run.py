"""`penstock faults`, with trials that are played by the test."""

import json
import os
import signal
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager

import pytest
from typer.testing import CliRunner

from penstock.bench.harness import Check
from penstock.cli.main import app
from penstock.faults import run, table
from penstock.faults.row import Outcome, Row, Where

runner = CliRunner()
Asked = list[tuple[str, int, int]]


class Played:
    """A stage that notes what is asked of it; rows of `failing` lose an item."""

    def __init__(self, asked: Asked, failing: str) -> None:
        self._asked = asked
        self._failing = failing

    def trial(self, row: Row, seed: int, number: int) -> Outcome:
        self._asked.append((row.name, seed, number))
        return Outcome({}, [Check("lost", float(row.name == self._failing), "==", 0)], 1.0)

    def close(self) -> None:
        """Nothing is left of it."""


def play(monkeypatch: pytest.MonkeyPatch, failing: str = "", kind: type[Played] = Played) -> Asked:
    asked: Asked = []

    @contextmanager
    def stage(where: Where) -> Iterator[Played]:
        made = kind(asked, failing)
        yield made
        made.close()

    monkeypatch.setattr(run, "stage", stage)
    return asked


def test_rows_are_repeated_and_told_with_their_seed(monkeypatch: pytest.MonkeyPatch) -> None:
    asked = play(monkeypatch)
    arguments = ["kill-task-worker", "--only", "kill-executor", "--repeat", "2", "--seed", "5", "--json"]
    result = runner.invoke(app, ["faults", *arguments])
    assert result.exit_code == 0, result.output
    rows = [json.loads(line) for line in result.stdout.splitlines()]
    assert [row["bench"] for row in rows] == ["faults kill-task-worker", "faults kill-executor"]
    assert {row["figures"]["seed"] for row in rows} == {5}
    assert sorted(asked) == [(name, 5, n) for name in ("kill-executor", "kill-task-worker") for n in range(2)]
    assert "2 rows, 2 trials of each, seed 5" in result.stderr
    assert "1 of 4: kill-task-worker, local, 0 s: ok, bound holds again after 1 s" in result.stderr


class Together(Played):
    """A stage whose trials end only when another trial is carried out at the same time."""

    met = threading.Barrier(2, timeout=10)

    def trial(self, row: Row, seed: int, number: int) -> Outcome:
        outcome = super().trial(row, seed, number)
        self.met.wait()
        return outcome


class Terminated(Played):
    """A stage in whose second trial this process is told to end; it takes a while longer."""

    def trial(self, row: Row, seed: int, number: int) -> Outcome:
        outcome = super().trial(row, seed, number)
        if len(self._asked) == 2:
            os.kill(os.getpid(), signal.SIGTERM)
            time.sleep(0.2)
            self._asked.append(("over", seed, number))
        return outcome

    def close(self) -> None:
        self._asked.append(("closed", 0, 0))


def test_whoever_is_told_to_end_ends_after_the_trial_that_runs(monkeypatch: pytest.MonkeyPatch) -> None:
    asked = play(monkeypatch, kind=Terminated)
    result = runner.invoke(app, ["faults", "kill-executor", "--repeat", "9", "--seed", "5", "--json"])
    assert result.exit_code == 128 + signal.SIGTERM
    assert [name for name, _, _ in asked] == ["kill-executor", "kill-executor", "over", "closed"]


@pytest.mark.parametrize(
    "names", [("sigterm", "ctrl-c"), ("ctrl-c", "raises-skip"), ("kill-task-worker", "leaks")]
)
def test_trials_that_do_not_disturb_each_other_run_side_by_side(
    monkeypatch: pytest.MonkeyPatch, names: tuple[str, str]
) -> None:
    asked = play(monkeypatch, kind=Together)
    result = runner.invoke(app, ["faults", *names, "--repeat", "2", "--seed", "5", "--json"])
    assert result.exit_code == 0, result.output
    rows = [json.loads(line)["bench"] for line in result.stdout.splitlines()]
    assert rows == [f"faults {name}" for name in names]
    assert sorted(asked) == [(name, 5, n) for name in sorted(names) for n in range(2)]


def test_every_row_has_its_lanes() -> None:
    for row in table.ROWS.values():
        assert sum(phase.holds(row) for phase in run.PHASES) == 1, row.name


def test_a_check_that_fails_is_exit_code_1(monkeypatch: pytest.MonkeyPatch) -> None:
    play(monkeypatch, failing="raises-skip")
    result = runner.invoke(app, ["faults", "raises-skip", "raises-fail"])
    assert result.exit_code == 1
    assert "raises-skip, local, 0 s: FAILED: lost" in result.stderr


def test_the_table_is_shown_and_unknown_rows_are_refused() -> None:
    shown = runner.invoke(app, ["faults", "--list"], env={"COLUMNS": "200"})
    assert shown.exit_code == 0
    assert all(name in shown.stdout for name in table.ROWS)
    refused = runner.invoke(app, ["faults", "kill-nobody"])
    assert refused.exit_code == 2
    assert "no row of the fault table is called 'kill-nobody'; there are kill-executor, " in refused.stderr


def test_every_row_has_words_of_its_own() -> None:
    assert len({row.about for row in table.ROWS.values()}) == len(table.ROWS)
