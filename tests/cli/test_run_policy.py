"""`penstock run` has the words and defaults of `penstock.run`, and refuses before anything starts."""

import inspect
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

import penstock
from penstock.cli import run
from penstock.cli.main import app
from penstock.control.recording import Recorder
from tests.control.headers import HEADER

FREE = "tests.cli.test_run_policy:free"


def free() -> penstock.Flow:
    """Without constraints."""
    flow = penstock.Flow("free")
    flow.source(penstock.paced(lambda partition, index, seed: index, 10), name="numbers").sink(
        print, name="out"
    )
    return flow


@pytest.fixture(autouse=True)
def no_spark(monkeypatch: pytest.MonkeyPatch) -> None:
    def started(*arguments: Any, **options: Any) -> Any:
        raise AssertionError("Spark was started")

    monkeypatch.setattr("penstock.spark.run.session", started)


def test_words_and_defaults_are_the_same() -> None:
    inside, outside = inspect.signature(penstock.run).parameters, inspect.signature(run.command).parameters
    words = {"policy", "interval", "recommend", "recording", "metrics", "shrink_pools_after", "settings"}
    assert words <= set(inside)
    assert words <= set(outside)
    for word in words - {"settings"}:
        assert inside[word].default == outside[word].default, word


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["primetest", "--policy", "nephelle"], "policy 'nephelle' is not known; did you mean 'nephele'?"),
        (["primetest", "--set", "penstock.shar=1"], "did you mean 'share'?"),
        (["primetest", "--set", "penstock.share=7"], "setting 'penstock.share'"),
        (["primetest", "--interval", "0.5 s"], "shorter than 1.0 s"),
        (["primetest", "--commit", "2 s"], "nothing would ever be decided"),
        (["primetest", "--commit", "6 s", "--interval", "5 s"], "nothing would ever be decided"),
        (["primetest", "--recording", "/nowhere/run.jsonl"], "there is no directory /nowhere"),
        (["primetest", "--policy", "none", "--recording", "run.jsonl"], "policy is None"),
        ([FREE, "--recording", "run.jsonl"], 'flow "free" has no constraints'),
        ([FREE, "--recommend"], "recommend would have no effect"),
    ],
)
def test_what_cannot_be_done_is_refused_before_spark_starts(arguments: list[str], words: str) -> None:
    refused = CliRunner().invoke(app, ["run", *arguments])
    assert refused.exit_code == 2, refused.output
    assert refused.stderr.startswith("penstock: ")
    assert words in refused.stderr


def test_a_recording_that_cannot_be_gone_on_with_is_refused_and_left_alone(tmp_path: Path) -> None:
    other, newer = tmp_path / "other.jsonl", tmp_path / "newer.jsonl"
    for path in (other, newer):
        Recorder(path, HEADER).close()
    newer.write_bytes(newer.read_bytes().replace(b'"version":2', b'"version":9'))
    for path, words in ((other, "holds runs of flow 'run'"), (newer, "recording.version: 9 is not known")):
        before = path.read_bytes()
        refused = CliRunner().invoke(app, ["run", "primetest", "--recording", str(path)])
        assert (refused.exit_code, words in refused.stderr) == (2, True), refused.output
        assert path.read_bytes() == before


@pytest.mark.parametrize("arguments", [[FREE], [FREE, "--commit", "1 s"], ["primetest", "--policy", "none"]])
def test_what_was_fine_without_a_policy_still_starts(arguments: list[str]) -> None:
    begun = CliRunner().invoke(app, ["run", *arguments])
    assert isinstance(begun.exception, AssertionError)
    assert str(begun.exception) == "Spark was started"
