"""Snapshots of version 1, as a simulator and a Spark of that time recorded them, are read as before."""

import json
from pathlib import Path

import pytest
from typer.testing import CliRunner

from penstock.cli.main import app
from penstock.control.recording import read_decisions, read_snapshots
from penstock.stats.snapshot import decode_snapshot, encode_snapshot

OLD = Path(__file__).parent / "version_1"
SPARK, SIMULATED = OLD / "primetest_spark.jsonl", OLD / "twitter_simulated.jsonl"


@pytest.mark.parametrize("path", [SPARK, SIMULATED])
def test_they_become_version_2_and_say_the_same(path: Path) -> None:
    lines = [json.loads(line) for line in path.read_text().splitlines()]
    old = [line for line in lines if "recording" not in line]
    assert {line["version"] for line in old} == {1}
    for line, snapshot in zip(old, read_snapshots(path), strict=True):
        written = json.loads(encode_snapshot(snapshot))
        assert written == {**line, "version": 2}
        assert decode_snapshot(written) == snapshot
        assert {stream.emitted_total for stream in snapshot.streams} == {None}


def test_decisions_on_them_are_those_of_that_time() -> None:
    decided = CliRunner().invoke(app, ["decide", str(SIMULATED), "--policy", "ds2"])
    assert decided.exit_code == 0, decided.output
    now = [json.loads(line)["parallelism"] for line in decided.stdout.splitlines()]
    assert now == [entry.decision.parallelism for entry in read_decisions(SIMULATED)]


@pytest.mark.parametrize("policy", ["nephele", "ds2", "mape", "dhalion", "threshold"])
def test_every_policy_reads_them(policy: str) -> None:
    decided = CliRunner().invoke(app, ["decide", str(SPARK), "--policy", policy])
    assert decided.exit_code == 0, decided.output
    assert len(decided.stdout.splitlines()) == 3
