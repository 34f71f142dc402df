"""`penstock simulate` from the outside."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest
import typer
from typer.testing import CliRunner

from penstock.cli.decide import command as decide
from penstock.cli.simulate import command
from penstock.control.recording import read_decisions, read_headers

if TYPE_CHECKING:
    from pathlib import Path

app = typer.Typer()
app.command("simulate")(command)
app.command("decide")(decide)
SHORT = ["simulate", "livestream", "--profile", "tenth", "--seconds", "10"]


def test_json_is_one_object_with_the_figures_of_the_run() -> None:
    result = CliRunner().invoke(app, [*SHORT, "--policy", "nephele", "--seed", "2", "--json"])
    assert result.exit_code == 0, result.output
    summary = json.loads(result.stdout)
    assert summary["flow"] == "livestream"
    assert summary["policy"] == "nephele"
    assert summary["seed"] == 2
    assert summary["simulated_s"] == 10.0
    assert 0.0 <= summary["constraints"]["live"]["share_held"] <= 1.0


def test_the_same_seed_gives_the_same_figures() -> None:
    outputs = [CliRunner().invoke(app, [*SHORT, "--seed", seed, "--json"]).stdout for seed in ("1", "1", "2")]
    assert outputs[0] == outputs[1]
    assert outputs[0] != outputs[2]


def test_a_table_is_shown_without_json() -> None:
    result = CliRunner().invoke(app, SHORT)
    assert result.exit_code == 0
    for word in ("constraints", "live", "scaling actions", "worker-hours"):
        assert word in result.stdout


def test_a_recording_is_decided_again_by_penstock_decide(tmp_path: Path) -> None:
    path = tmp_path / "run.jsonl"
    recorded = CliRunner().invoke(app, [*SHORT, "--policy", "nephele", "--recording", str(path)])
    assert recorded.exit_code == 0
    assert "run.decisions.jsonl" in recorded.stdout.replace("\n", "")
    replayed = CliRunner().invoke(app, ["decide", str(path), "--policy", "nephele"])
    assert replayed.exit_code == 0, replayed.output
    again = [json.loads(line) for line in replayed.stdout.splitlines()]
    first = [entry.decision for entry in read_decisions(path)]
    assert [line["batch_lifetime_ms"] for line in again] == [entry.batch_lifetime_ms for entry in first]
    assert [line["chains"] for line in again] == [entry.chains for entry in first]


def test_a_second_run_is_appended_and_one_of_another_flow_refused(tmp_path: Path) -> None:
    path = tmp_path / "run.jsonl"
    for policy in ("nephele", "ds2"):
        done = CliRunner().invoke(app, [*SHORT, "--policy", policy, "--seed", "3", "--recording", str(path)])
        assert done.exit_code == 0, done.output
    headers = list(read_headers(path))
    assert [header.policy for header in headers] == ["nephele", "ds2"]
    assert {(header.flow, header.started_at_s, header.slots) for header in headers} == {
        ("livestream", 0.0, None)
    }
    entries = list(read_decisions(path))
    assert [entry.number for entry in entries] == list(range(len(entries)))
    other = CliRunner().invoke(app, ["simulate", "twitter", "--recording", str(path)], env={"COLUMNS": "300"})
    assert other.exit_code == 2
    assert "run.jsonl: holds runs of flow 'livestream', not of" in other.stderr
    again = CliRunner().invoke(app, ["simulate", "--measured", str(path), "--seconds", "5", "--json"])
    assert json.loads(again.stdout)["flow"] == "livestream"


def test_guards_hold_a_policy_back() -> None:
    words = ["simulate", "wordcount", "--seconds", "40", "--policy", "ds2", "--json"]
    free = json.loads(CliRunner().invoke(app, words).stdout)
    held = json.loads(CliRunner().invoke(app, [*words, "--guards", "--set", "guards.warm_up_s=100"]).stdout)
    assert free["actions"] > held["actions"]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (
            ["simulate", "primtest"],
            "no application is called 'primtest'; did you mean 'primetest'? there are",
        ),
        (["simulate", "twitter", "--profile", "x"], "no profile of twitter is called 'x'; there are paper"),
        (
            ["simulate", "twitter", "--policy", "nephel"],
            "policy 'nephel' is not known; did you mean 'nephele'?",
        ),
        (["simulate", "twitter", "--seconds", "0"], "--seconds: 0.0 is not a positive number of seconds"),
        (["simulate", "twitter", "--set", "penstock.x=1"], "penstock has no parameter 'x'"),
        (
            ["simulate", "twitter", "--recording", "/nowhere/run.jsonl"],
            "/nowhere/run.jsonl: cannot be written: there is no directory /nowhere",
        ),
    ],
)
def test_what_cannot_be_run_is_refused_by_name(arguments: list[str], message: str) -> None:
    result = CliRunner().invoke(app, arguments, env={"COLUMNS": "300"})
    assert result.exit_code == 2
    assert message in result.stderr


def test_shares_tell_what_each_costs() -> None:
    asked = ["simulate", "primetest", "--profile", "tenth", "--seconds", "60", "--policy", "penstock"]
    result = CliRunner().invoke(app, [*asked, "--shares", "0.8,0.99", "--json"])
    assert result.exit_code == 0, result.output
    few, many = json.loads(result.stdout)
    assert (few["share"], many["share"]) == (0.8, 0.99)
    assert few["replica_hours"] <= many["replica_hours"]
    assert set(few["held"]) == set(many["held"])
    shown = CliRunner().invoke(app, [*asked, "--shares", "0.9"])
    assert "replica-hours" in shown.stdout
    assert "0.9" in shown.stdout


@pytest.mark.parametrize(
    ("more", "told"),
    [
        (["--policy", "ds2", "--shares", "0.9"], "ds2 knows no shares"),
        (["--policy", "penstock", "--shares", "0.9,1"], "1 is not between 0 and 1"),
        (["--policy", "penstock", "--shares", "many"], "no list of numbers"),
        (["--policy", "penstock", "--shares", "0.9", "--recording", "run.jsonl"], "several runs"),
    ],
)
def test_shares_that_cannot_be_used_are_refused(more: list[str], told: str) -> None:
    result = CliRunner().invoke(app, [*SHORT, *more])
    assert result.exit_code != 0
    assert told in " ".join(result.output.split())
