"""Whatever the command: what went wrong is a line that begins with `penstock:`, and an exit code."""

from pathlib import Path

import pytest
import typer
from rich.console import Console
from typer.testing import CliRunner

from penstock.cli.errors import BAD_INPUT, FAILED, user_errors
from penstock.cli.main import app
from penstock.flow import FlowError
from penstock.flow.errors import JobFailed
from penstock.operate.client import NoAnswerError, NoSuchFlowError
from penstock.operate.place import PlaceError

WRONG = [
    ["run", "nonsense"],
    ["explain", "nonsense"],
    ["graph", "nonsense", "--out", "g.svg"],
    ["replay-dead-letters", "nonsense"],
    ["status", "./missing"],
    ["stop", "nobody"],
    ["set", "nobody", "--replicas", "work=2"],
    ["decide", "missing.json", "--policy", "ds2"],
    ["decide", "missing.json", "--policy", "nobody"],
    ["simulate", "nothing"],
    ["simulate", "primetest", "--policy", "nobody"],
    ["simulate", "--recording", "missing.jsonl"],
    ["simulate", "primetest", "--seconds", "0"],
    ["report", "missing.jsonl", "--out", "page"],
    ["bench", "speed"],
    ["bench", "cpu", "--against", "missing"],
    ["faults", "nothing"],
    ["soak", "--trace", "missing.csv"],
    ["soak", "--for", "a while"],
    ["evaluate", "--only", "nothing"],
    ["arena", "--policy", "nobody"],
    ["arena", "--only", "nothing"],
    ["evaluate", "--no-run", "--out", "missing"],
]


@pytest.fixture(autouse=True)
def elsewhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(tmp_path))
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))


@pytest.mark.parametrize("words", WRONG, ids=" ".join)
def test_what_is_wrong_is_a_line_and_exit_code_2(words: list[str]) -> None:
    refused = CliRunner().invoke(app, words)
    assert refused.exit_code == 2, refused.output
    *_, last = refused.stderr.strip().splitlines()
    assert last.startswith("penstock: ")
    assert refused.stdout == ""


@pytest.mark.parametrize(
    ("error", "code", "told"),
    [
        (FlowError("no"), BAD_INPUT, "penstock: no"),
        (NoSuchFlowError("no flow runs"), BAD_INPUT, "penstock: no flow runs"),
        (FileNotFoundError(2, "No such file", "there"), BAD_INPUT, "penstock: there: No such file"),
        (JobFailed("it failed"), FAILED, "penstock: it failed"),
        (NoAnswerError("it hangs"), FAILED, "penstock: it hangs"),
        (PlaceError("not yours"), FAILED, "penstock: not yours"),
    ],
)
def test_who_is_at_fault(error: Exception, code: int, told: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(typer.Exit) as ended, user_errors(Console(stderr=True)):
        raise error
    assert ended.value.exit_code == code
    assert capsys.readouterr().err.strip() == told


def test_what_nobody_expected_is_not_hidden() -> None:
    with pytest.raises(KeyError), user_errors(Console(stderr=True)):
        raise KeyError("a defect")
    with pytest.raises(ConnectionError), user_errors(Console(stderr=True)):
        raise ConnectionError("a defect")


def test_errors_are_red_where_there_are_colours(monkeypatch: pytest.MonkeyPatch) -> None:
    console = Console(force_terminal=True, record=True, width=40)
    with pytest.raises(typer.Exit), user_errors(console):
        raise FlowError("a [bold]long[/] message that is not broken into lines")
    assert "\x1b[31mpenstock: a [bold]long[/] message that is not broken into lines" in console.export_text(
        styles=True
    )
