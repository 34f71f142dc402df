"""`penstock simulate module:flow`: the user's own flow, with what is said or was measured beside it."""

import json
from pathlib import Path
from typing import Any

import msgspec
import pytest
from typer.testing import CliRunner

import penstock as ps
from penstock.cli.main import app
from penstock.control.recording import read_decisions, read_header, read_snapshots
from penstock.io.schedule import steps
from penstock.policy.decision import Decision

HERE = "tests.cli.test_simulate_flow"
SERVICE = ["--service", "work=4ms,cv=0.5"]


def number(partition: int, index: int, seed: int) -> int:
    return index


def climbing() -> ps.Flow:
    """200, then 900 items a second, for a task of which one replica does 250."""
    flow = ps.Flow("climbing")
    numbers = flow.source(ps.paced(number, steps([(30, 200), (60, 900)])), name="numbers")
    numbers.map(abs, name="work", parallelism=ps.elastic(1, 8)).sink(print, name="out")
    flow.constrain("50 ms", ["numbers->work", "work", "work->out"], name="quick")
    return flow


def endless(rate: float = 100) -> ps.Flow:
    flow = ps.Flow("endless")
    numbers = flow.source(ps.paced(number, rate), name="numbers")
    numbers.map(abs, name="work", parallelism=ps.elastic(1, 8)).sink(print, name="out")
    flow.constrain("50 ms", ["numbers->work", "work", "work->out"], name="quick")
    return flow


def from_files(path: str) -> ps.Flow:
    flow = ps.Flow("files")
    flow.source(ps.replay(path), name="lines").map(len, name="length").sink(print, name="out")
    return flow


def run(*arguments: str) -> Any:
    return CliRunner().invoke(app, ["simulate", *arguments], env={"COLUMNS": "300"})


def summary(*arguments: str) -> dict[str, Any]:
    result = run(*arguments, "--json")
    assert result.exit_code == 0, result.output
    figures: dict[str, Any] = json.loads(result.stdout)
    return figures


def test_the_schedule_of_the_flow_is_followed_to_its_end() -> None:
    shown = summary(f"{HERE}:climbing", *SERVICE, "--as-run")
    assert (shown["flow"], shown["policy"], shown["simulated_s"]) == ("climbing", "penstock", 90.0)
    assert shown["items"] == pytest.approx(30 * 200 + 60 * 900, rel=0.01)
    assert shown["actions"] >= 1
    assert shown["constraints"]["quick"]["share_held"] > 0.5


def test_a_static_flow_drowns_in_the_same_load() -> None:
    """So the service time counts."""
    assert (
        summary(f"{HERE}:climbing", *SERVICE, "--policy", "static")["constraints"]["quick"]["share_held"]
        < 0.5
    )
    quick = summary(f"{HERE}:climbing", "--service", "work=0.1ms", "--policy", "static")
    assert quick["constraints"]["quick"]["share_held"] == 1.0


@pytest.mark.parametrize(
    ("load", "seconds", "items"),
    [("50", 60, 3000), ("10s:100,1min:20", 70, 2200), ("numbers=10s:100", 10, 1000)],
)
def test_a_load_may_be_given(load: str, seconds: float, items: int) -> None:
    shown = summary(f"{HERE}:endless", *SERVICE, "--load", load, "--policy", "static")
    assert shown["simulated_s"] == seconds
    assert shown["items"] == pytest.approx(items, abs=3)


def test_a_trace_is_followed(tmp_path: Path) -> None:
    trace = tmp_path / "day.csv"
    trace.write_text("timestamp,value,requests\n0,1,10\n600,1,40\n1200,1,20\n")
    load = f"{trace},column=requests,speed_up=60,scale=2"
    shown = summary(f"{HERE}:endless", *SERVICE, "--load", load, "--policy", "static")
    assert shown["simulated_s"] == 30.0
    assert shown["items"] == pytest.approx(10 * (20 + 80 + 40), abs=3)


def test_options_of_the_flow_are_taken() -> None:
    shown = summary(f"{HERE}:endless", "-o", "rate=7", *SERVICE, "--seconds", "20", "--policy", "static")
    assert shown["items"] == pytest.approx(140, abs=2)


def test_ratios_multiply_items(tmp_path: Path) -> None:
    recording = tmp_path / "run.jsonl"
    words = ("--ratio", "work=3", "--policy", "static", "--seconds", "20", "--recording", str(recording))
    summary(f"{HERE}:endless", *SERVICE, *words)
    last = list(read_snapshots(recording))[-1]
    processed = last.tasks["out"].processed_total
    assert processed == pytest.approx(3 * 100 * 5, rel=0.1)


def test_service_times_and_load_of_a_recording_are_taken(tmp_path: Path) -> None:
    recording = tmp_path / "run.jsonl"
    words = ("--load", "30s:200,30s:120", "--recording", str(recording), "--policy", "static")
    summary(f"{HERE}:endless", *SERVICE, *words)
    again = summary(f"{HERE}:endless", "--measured", str(recording), "--policy", "static")
    assert again["simulated_s"] == 60.0
    assert again["items"] == pytest.approx(30 * 320, rel=0.02)
    slower = summary(
        f"{HERE}:endless", "--measured", str(recording), "--service", "work=9ms", "--policy", "static"
    )
    assert slower["constraints"]["quick"]["share_held"] < again["constraints"]["quick"]["share_held"]
    alone = summary("--measured", str(recording), "--policy", "static")
    assert (alone["flow"], alone["simulated_s"]) == ("endless", 60.0)


def test_as_run_decides_as_live_flows_do_and_is_decided_again(tmp_path: Path) -> None:
    recording = tmp_path / "run.jsonl"
    policy = ("--as-run", "--policy", "nephele")
    summary(f"{HERE}:climbing", *SERVICE, *policy, "--recording", str(recording))
    header = read_header(recording)
    assert header is not None
    assert (header.policy, header.guards) == ("nephele", True)
    assert "nephele.bound_share=0.85" in header.settings
    replayed = CliRunner().invoke(app, ["decide", str(recording), "--as-run"])
    again = [msgspec.json.decode(line, type=Decision) for line in replayed.stdout.splitlines()]
    first = [entry.decision for entry in read_decisions(recording)]
    assert len(first) == 18
    assert again == first
    assert any(refusal.guard == "warm_up" for decision in first for refusal in decision.refused)


def test_as_run_takes_the_policy_of_the_recording(tmp_path: Path) -> None:
    recording, next_one = tmp_path / "run.jsonl", tmp_path / "next.jsonl"
    words = ("--as-run", "--policy", "ds2", "--set", "ds2.headroom=0.3", "--recording", str(recording))
    summary(f"{HERE}:climbing", *SERVICE, *words)
    shown = summary("--measured", str(recording), "--as-run", "--recording", str(next_one))
    assert shown["policy"] == "ds2"
    before, after = read_header(recording), read_header(next_one)
    assert before is not None
    assert after is not None
    assert after.settings == before.settings


def test_intervals_may_be_chosen(tmp_path: Path) -> None:
    recording = tmp_path / "run.jsonl"
    words = ("--interval", "2 s", "--seconds", "10", "--recording", str(recording))
    summary(f"{HERE}:climbing", *SERVICE, *words)
    assert [snapshot.interval_s for snapshot in read_snapshots(recording)] == [2.0] * 5


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ([], "name a FLOW: module:flow, or one of primetest"),
        ([f"{HERE}:climbing"], "how long work takes for an item is not known; say it (--service work=5ms)"),
        ([f"{HERE}:climbing", "--service", "wrk=5ms"], 'has no task "wrk"; its tasks are numbers, work, out'),
        ([f"{HERE}:climbing", "--service", "numbers=5ms"], "'numbers' is a source: it has a load"),
        ([f"{HERE}:climbing", "--service", "work"], "write it like --service work=5ms"),
        ([f"{HERE}:climbing", "--service", "work=soon"], "'soon' is not a duration"),
        ([f"{HERE}:climbing", "--service", "work=5ms,cw=1"], "after a comma there may be cv"),
        ([f"{HERE}:climbing", *SERVICE, "--ratio", "work=many"], "'many' is not a number"),
        ([f"{HERE}:climbing", *SERVICE, "--load", "x.csv"], "x.csv cannot be read: No such file"),
        ([f"{HERE}:climbing", *SERVICE, "--load", "10s:-3"], "has the rate -3.0"),
        ([f"{HERE}:climbing", *SERVICE, "--load", "work=3"], "could not convert"),
        ([f"{HERE}:climbing", *SERVICE, "--profile", "paper"], "--profile is for applications"),
        ([f"{HERE}:climbing", *SERVICE, "--policy", "nephel"], "did you mean 'nephele'?"),
        ([f"{HERE}:climbing", *SERVICE, "--set", "guards.warm_up_s=1"], "nothing called 'guards' is in use"),
        ([f"{HERE}:climbing", *SERVICE, "--interval", "0 s"], "--interval: 0 s is not longer than nothing"),
        (["--load", "5"], "name a FLOW: module:flow"),
        ([f"{HERE}:nothing"], "has no 'nothing'"),
        (["primetest", "--service", "tester=1ms"], "application 'primetest' has a model of its own"),
        (["--measured", "absent.jsonl"], "--measured: absent.jsonl cannot be read: No such file"),
    ],
)
def test_what_cannot_be_simulated_is_refused_in_words(arguments: list[str], words: str) -> None:
    result = run(*arguments)
    assert result.exit_code == 2, result.output
    assert words in result.stderr


def test_a_source_without_a_schedule_needs_a_load(tmp_path: Path) -> None:
    (tmp_path / "lines").write_text("a\n")
    words = [f"{HERE}:from_files", "-o", f"path={tmp_path / 'lines'}", "--service", "length=1ms"]
    refused = run(*words)
    assert "the load of source 'lines' is not known; say it (--load 500" in refused.stderr
    assert summary(*words, "--load", "50")["items"] == pytest.approx(3000, abs=3)
