"""A few seconds of one application, from the run to the document."""

from pathlib import Path

import pytest
from rich.console import Console
from typer.testing import CliRunner

from penstock.apps import primetest as primetest_app
from penstock.cli.main import app
from penstock.evaluation import primetest, progress
from penstock.evaluation.document import part_in, recording_of, write_document
from penstock.evaluation.trial import Trial, TrialFailed, trial_plan
from penstock.report.history import read_history
from tests.evaluation.histories import interval, record


def test_all_runs_have_the_same_settings_but_for_what_they_are_about(tmp_path: Path) -> None:
    plan = trial_plan("dhalion", ("dhalion.noise=0.1",), tmp_path / "run.jsonl")
    assert plan.interval_s == 2.0
    assert plan.shrink_pools_after_s == 3600.0
    assert plan.settings == ("dhalion.policy_interval_s=4", "dhalion.settle_s=12", "dhalion.noise=0.1")


def test_a_run_that_failed_leaves_no_recording(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(recording: Path) -> None:
        recording.write_text("{}")
        raise RuntimeError("no Spark")

    monkeypatch.setattr(progress, "warm_up", lambda: None)
    with pytest.raises(RuntimeError, match="no Spark"):
        progress.run_trials([Trial("failing", 1.0, fail)], tmp_path, Console(quiet=True))
    assert not recording_of("failing", tmp_path).exists()


def test_a_recording_that_is_there_is_made_anew(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(progress, "warm_up", lambda: None)
    trial = Trial("again", 1.0, lambda path: record(path, [interval({"work": 1})]))
    for _ in range(2):
        progress.run_trials([trial], tmp_path, Console(quiet=True))
    assert len(read_history(recording_of("again", tmp_path)).snapshots) == 1


def test_the_command_names_a_run_that_failed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(trials: object, directory: Path, console: Console) -> None:
        raise TrialFailed("run 'twitter' of the evaluation: the controller has stopped")

    monkeypatch.setattr(progress, "run_trials", fail)
    found = CliRunner().invoke(app, ["evaluate", "--only", "twitter", "--out", str(tmp_path)])
    assert found.exit_code == 1
    assert "run 'twitter' of the evaluation: the controller has stopped" in found.output


@pytest.mark.spark
def test_primetest_for_a_few_seconds(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(progress, "warm_up", lambda: None)
    monkeypatch.setattr(primetest_app, "SHORT", ((5.0, 0.1),))
    monkeypatch.setattr(primetest, "POLICIES", ("ds2",))
    monkeypatch.setattr(primetest, "VARIANTS", primetest.VARIANTS[:1])
    progress.run_trials(primetest.trials(), tmp_path, Console(quiet=True))
    history = read_history(recording_of("primetest-rate_limited-ds2", tmp_path))
    assert history.policy == "ds2"
    assert sum(one.tasks["results"].processed_total or 0 for one in history.snapshots) > 0
    found = part_in(primetest, tmp_path)
    assert found is not None
    write_document({"found": found}, tmp_path / "document.md")
    assert "| ds2 |" in (tmp_path / "document.md").read_text()
