"""`penstock status` on files: of a recording, of a flow that was killed, of a controller that died."""

import json
from pathlib import Path

from typer.testing import CliRunner

from penstock.cli.main import app
from penstock.cli.status import headline
from penstock.control.status import IN_CHECKPOINT, write_status
from tests.control.test_status import record, status


def test_a_recording_shows_constraints_tasks_and_decisions(tmp_path: Path) -> None:
    recording = tmp_path / "run.jsonl"
    record(recording, intervals=9)
    shown = CliRunner().invoke(app, ["status", str(recording), "--last", "2"])
    assert shown.exit_code == 0, shown.output
    for text in ("run: recorded, 9 intervals; policy ds2", "quick", "work", "decision 8 of ds2", "#7", "#8"):
        assert text in shown.output, text
    assert "#6" not in shown.output


def test_json_is_the_status_itself(tmp_path: Path) -> None:
    write_status(tmp_path / IN_CHECKPOINT, status())
    shown = CliRunner().invoke(app, ["status", str(tmp_path), "--json"])
    assert json.loads(shown.stdout)["flow"] == "primes"


def test_silence_and_a_dead_controller_are_named() -> None:
    assert list(headline(status(), 110.0)) == ["primes: running, batch 0; policy ds2"]
    silent = list(headline(status(), 200.0))
    assert "said nothing for 100 s" in silent[1]
    over = status(state="stopped", problem="the controller has stopped", applies=False)
    assert list(headline(over, 9999.0)) == [
        "primes: stopped, batch 0; policy ds2, only recommending",
        "the controller has stopped",
    ]


def test_a_place_without_a_status_exits_with_2(tmp_path: Path) -> None:
    shown = CliRunner().invoke(app, ["status", str(tmp_path)])
    assert shown.exit_code == 2
    assert "cannot be read" in shown.stderr
