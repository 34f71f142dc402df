"""`penstock decide` from files and standard input: decisions, memory, settings, errors, explanations."""

import json
import re
from pathlib import Path
from typing import Any

import pytest
import typer
from typer.testing import CliRunner

from penstock.cli.decide import command
from penstock.control.recording_header import encode_header
from penstock.policy.registry import policy_names
from tests.control.headers import HEADER

app = typer.Typer()
app.command()(command)

WORD_COUNT: dict[str, Any] = {
    "version": 2,
    "interval_s": 60,
    "tasks": {
        "source": {"kind": "source", "parallelism": 1, "rate_total": 16666.6667},
        "flat_map": {
            "kind": "task",
            "parallelism": 1,
            "min": 1,
            "max": 50,
            "elastic": True,
            "processed_total": 100000,
            "emitted_total": 2000000,
            "useful_s": 60,
            "utilization": 1.0,
            "service_ms": 0.6,
            "baseline_service_ms": 0.6,
            "backlog_total": 900000,
        },
        "count": {
            "kind": "task",
            "parallelism": 1,
            "min": 1,
            "max": 50,
            "elastic": True,
            "processed_total": 1000000,
            "emitted_total": 0,
            "useful_s": 60,
            "utilization": 1.0,
            "service_ms": 0.06,
            "baseline_service_ms": 0.06,
            "backlog_total": 1000000,
        },
    },
    "streams": [{"from": "source", "to": "flat_map"}, {"from": "flat_map", "to": "count", "wiring": "key"}],
}


def changed(task: str, **fields: Any) -> dict[str, Any]:
    tasks = {**WORD_COUNT["tasks"], task: {**WORD_COUNT["tasks"][task], **fields}}
    return {**WORD_COUNT, "tasks": tasks}


def run(*arguments: str, given: str | None = None) -> Any:
    return CliRunner().invoke(app, list(arguments), input=given)


def decide(snapshot: dict[str, Any], *arguments: str) -> dict[str, Any]:
    result = run("-", *arguments, given=json.dumps(snapshot))
    assert result.exit_code == 0, result.output
    decision: dict[str, Any] = json.loads(result.stdout)
    return decision


def test_one_decision_from_a_file_over_many_lines(tmp_path: Path) -> None:
    path = tmp_path / "snapshot.json"
    path.write_text(json.dumps(WORD_COUNT, indent=2))
    result = run(str(path), "--policy", "ds2")
    assert result.exit_code == 0
    assert len(result.stdout.splitlines()) == 1
    decision = json.loads(result.stdout)
    assert decision["policy"] == "ds2"
    assert decision["parallelism"] == {"flat_map": 10, "count": 20}
    assert decision["feasible"] is True
    assert decision["reasons"][0]["from"] == 1
    assert decision["reasons"][0]["to"] == 10


@pytest.mark.parametrize("name", policy_names())
def test_every_policy_lists_every_elastic_task(name: str) -> None:
    decision = decide(WORD_COUNT, "--policy", name)
    assert decision["policy"] == name
    assert set(decision["parallelism"]) == {"flat_map", "count"}
    assert set(decision) >= {"policy", "parallelism", "batch_lifetime_ms", "chains", "feasible", "reasons"}


def test_json_lines_carry_the_memory_along() -> None:
    lines = "\n".join([json.dumps(WORD_COUNT)] * 2) + "\n\n"
    result = run("-", "--policy", "mape", given=lines)
    assert result.exit_code == 0
    decisions = [json.loads(line) for line in result.stdout.splitlines()]
    assert [decision["parallelism"]["flat_map"] for decision in decisions] == [1, 2]


def test_memory_begins_anew_where_a_recorded_run_was_started_again() -> None:
    head = encode_header(HEADER).decode()
    lines = "\n".join([head, json.dumps(WORD_COUNT), head, json.dumps(WORD_COUNT), json.dumps(WORD_COUNT)])
    result = run("-", "--policy", "mape", given=lines)
    assert result.exit_code == 0, result.output
    decisions = [json.loads(line) for line in result.stdout.splitlines()]
    assert [decision["parallelism"]["flat_map"] for decision in decisions] == [1, 1, 2]


@pytest.mark.parametrize("torn", [b'{"version": 2, "tas', '{"version": 2, "name": "ä'.encode()[:-1]])
def test_a_last_line_that_a_killed_run_left_is_told_and_left_out(tmp_path: Path, torn: bytes) -> None:
    path = tmp_path / "run.jsonl"
    whole = f"{encode_header(HEADER).decode()}\n{json.dumps(WORD_COUNT)}\n".encode()
    path.write_bytes(whole + torn)
    result = run(str(path), "--policy", "ds2")
    assert result.exit_code == 0, result.output
    assert len(result.stdout.splitlines()) == 1
    assert result.stderr == f"penstock: {path}, line 3: is cut off and left out\n"
    path.write_bytes(whole + torn + b"\n")
    refused = run(str(path), "--policy", "ds2")
    assert refused.exit_code == 2, "one that was ended is not cut off, but wrong"


def test_a_recording_without_snapshots_or_with_a_bad_header_is_refused() -> None:
    head = encode_header(HEADER).decode()
    empty = run("-", "--policy", "mape", given=head)
    assert (empty.exit_code, "standard input: holds no snapshot yet" in empty.stderr) == (2, True)
    newer = run("-", "--policy", "mape", given=head.replace('"version":2', '"version":3'))
    assert newer.exit_code == 2
    assert "line 1: recording.version: 3 is not known" in newer.stderr


def test_settings_replace_defaults() -> None:
    assert decide(WORD_COUNT, "--policy", "ds2", "--set", "ds2.headroom=0.5")["parallelism"] == {
        "flat_map": 15,
        "count": 30,
    }


def test_guards_are_off_unless_asked_for() -> None:
    assert decide(WORD_COUNT, "--policy", "ds2").get("refused") is None
    decision = decide(WORD_COUNT, "--policy", "ds2", "--guards", "--set", "guards.max_step_up=2")
    assert decision["parallelism"] == {"flat_map": 2, "count": 2}
    assert decision["refused"][0] == {
        "guard": "maximum_step",
        "task": "flat_map",
        "from": 1,
        "to": 10,
        "why": "at most 2 in one step from 1",
    }


@pytest.mark.parametrize(
    ("snapshot", "message"),
    [
        (changed("count", service_ms=-1), "tasks.count.service_ms: -1 is negative"),
        (
            changed("count", service_ms="fast"),
            'tasks.count.service_ms: expected a number or null, got "fast"',
        ),
        (changed("count", speed=1), "tasks.count.speed: unknown field"),
        ({**WORD_COUNT, "version": 3}, "version: 3 is not known"),
        (
            {**WORD_COUNT, "streams": [{"from": "source", "to": "nowhere"}]},
            "streams[0].to: there is no task 'nowhere'",
        ),
        (
            {
                **WORD_COUNT,
                "constraints": [{"name": "c", "sequence": ["source->flat_map", "count"], "latency_ms": 5}],
            },
            "constraints[0].sequence[1]: 'count' does not follow 'source->flat_map'",
        ),
    ],
)
def test_a_bad_snapshot_names_its_field(snapshot: dict[str, Any], message: str) -> None:
    result = run("-", "--policy", "ds2", given=json.dumps(snapshot))
    assert result.exit_code == 2
    assert result.stdout == ""
    assert result.stderr.startswith("penstock: standard input: ")
    assert message in result.stderr


def test_not_a_number_is_named() -> None:
    text = json.dumps(changed("count", utilization=float("nan")))
    result = run("-", "--policy", "ds2", given=text)
    assert result.exit_code == 2
    assert "tasks.count.utilization: nan is not a finite number" in result.stderr


def test_a_bad_line_is_named_and_nothing_is_decided(tmp_path: Path) -> None:
    path = tmp_path / "run.jsonl"
    path.write_text("\n".join(map(json.dumps, [WORD_COUNT, changed("count", parallelism=0)])))
    result = run(str(path), "--policy", "ds2")
    assert result.exit_code == 2
    assert result.stdout == ""
    assert f"{path}, line 2: tasks.count.parallelism: expected a whole number >= 1, got 0" in result.stderr


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["-", "--policy", "ds3"], "policy 'ds3' is not known; did you mean 'ds2'?"),
        (["-", "--policy", "ds2", "--set", "ds2.min_chang=1"], "did you mean 'min_change'?"),
        (["-", "--policy", "ds2", "--set", "mape.step=1"], "setting 'mape.step'"),
        (["-", "--policy", "ds2", "--set", "guards.warm_up_s=1"], "setting 'guards.warm_up_s'"),
        (["-", "--policy", "ds2", "--set", "ds2.min_change=-1"], "setting 'ds2.min_change'"),
        (["--policy", "ds2"], "SNAPSHOT is missing; name a file, or - for standard input"),
        (["no/such.json", "--policy", "ds2"], "no/such.json: cannot be read: No such file or directory"),
    ],
)
def test_bad_arguments(arguments: list[str], message: str) -> None:
    result = run(*arguments, given=json.dumps(WORD_COUNT))
    assert result.exit_code == 2
    assert message in result.stderr


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ("", "standard input: is empty"),
        ("{", "standard input: snapshot: is not JSON"),
        ("[]", "standard input: snapshot: expected an object, got a list"),
    ],
)
def test_what_is_no_snapshot(given: str, message: str) -> None:
    result = run("-", "--policy", "ds2", given=given)
    assert result.exit_code == 2
    assert message in result.stderr


def test_a_file_that_is_not_text(tmp_path: Path) -> None:
    path = tmp_path / "snapshot.json"
    path.write_bytes(b"\xff\xfe")
    result = run(str(path), "--policy", "ds2")
    assert result.exit_code == 2
    assert "is not UTF-8 text" in result.stderr


def test_explain_gives_formula_inputs_and_parameters_in_words() -> None:
    result = run("-", "--policy", "ds2", "--set", "ds2.headroom=0", "--explain", given=json.dumps(WORD_COUNT))
    assert result.exit_code == 0
    first, *words = result.stdout.splitlines()
    assert json.loads(first)["parallelism"] == {"flat_map": 10, "count": 20}
    text = "\n".join(words)
    assert "flat_map: 1 -> 10 replicas" in text
    assert "from target_per_s 16666.7, true_rate_per_replica_per_s 1666.67" in text
    assert "expecting utilization 1" in text
    assert "replicas of a task = ceil( rate that comes in / rate one replica can process )" in text
    assert "ds2.min_change = 1 replicas (default)" in text


@pytest.mark.parametrize("name", policy_names())
def test_explain_alone_lists_the_parameters(name: str) -> None:
    result = run("--policy", name, "--explain", "--guards", "--set", "guards.warm_up_s=30")
    assert result.exit_code == 0
    assert result.stdout.startswith(f"Policy {name}\n")
    assert "guards.warm_up_s = 30.0 s (set; the default is 0.0)" in result.stdout


def test_explain_tells_what_was_held_back() -> None:
    result = run(
        "-",
        "--policy",
        "ds2",
        "--guards",
        "--set",
        "guards.slot_budget=9",
        "--explain",
        given=json.dumps(WORD_COUNT),
    )
    assert "Decision over 60 s, which cannot be enough" in result.stdout
    assert "slot_budget (flat_map 1 -> 10): 31 slots would be needed and there are 9" in result.stdout


def test_the_example_of_the_documentation() -> None:
    page = Path(__file__).parents[2] / "docs" / "decide.md"
    given, expected = map(json.loads, re.findall(r"```json\n(.*?)```", page.read_text(), re.DOTALL))
    decision = decide(given, "--policy", "ds2")
    assert {name: decision[name] for name in expected} == expected
