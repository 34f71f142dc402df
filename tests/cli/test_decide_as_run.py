"""`penstock decide --as-run`: a recording gives exactly the decisions of its run."""

import json
from pathlib import Path
from typing import Any

import msgspec
import pytest
from typer.testing import CliRunner

from penstock.cli.main import app
from penstock.control.control_plan import ControlPlan
from penstock.control.live_policy import is_built_in
from penstock.control.loop import Controller
from penstock.control.recording import Recorder, read_decisions
from penstock.control.recording_header import RecordingHeader
from penstock.policy.decision import Decision
from penstock.policy.nephele import Nephele, NepheleParameters
from penstock.policy.registry import policy_names
from penstock.sim.catalogue import find_workload
from penstock.sim.run import simulate
from penstock.testing.engine import FakeEngine
from tests.control.steady_task import following, loaded
from tests.control.test_loop import CountingPolicy

CLIMBING = [900.0, 900.0, 900.0, 900.0, 2000.0, 2000.0, 500.0, 500.0, 300.0, 300.0, 300.0, 300.0]
SLOTS = 7


def header_of(plan: ControlPlan, flow: str = "run") -> RecordingHeader:
    return RecordingHeader(
        flow=flow,
        policy=plan.name,
        built_in=is_built_in(plan.policy),
        settings=plan.all_settings,
        recommend=plan.recommend,
        slots=SLOTS,
        interval_s=plan.interval_s,
        started_at_s=0.0,
    )


def record(path: Path, plan: ControlPlan) -> None:
    """A flow whose every change of replicas takes a boundary, under a plan."""
    engine = FakeEngine(following(CLIMBING), {"work": 1}, gap_ms=400.0)
    with Recorder(path, header_of(plan)) as recorder:
        list(Controller(engine, plan.create_policy(SLOTS), engine.clock, recorder).cycles())


def again(path: Path, *arguments: str) -> list[Decision]:
    result = CliRunner().invoke(app, ["decide", str(path), "--as-run", *arguments])
    assert result.exit_code == 0, result.output
    return [msgspec.json.decode(line, type=Decision) for line in result.stdout.splitlines()]


def recorded(path: Path) -> list[Decision]:
    return [entry.decision for entry in read_decisions(path)]


@pytest.mark.parametrize("policy", policy_names())
@pytest.mark.parametrize("recommend", [False, True])
def test_every_policy_decides_again_as_it_did_in_the_loop(
    tmp_path: Path, policy: str, recommend: bool
) -> None:
    path = tmp_path / "run.jsonl"
    record(path, ControlPlan(policy, settings=("guards.max_step_up=3",), recommend=recommend))
    assert len(recorded(path)) == len(CLIMBING)
    assert again(path) == recorded(path)


def test_what_made_the_difference_is_taken_from_the_recording(tmp_path: Path) -> None:
    """Slots, boundaries, guards and live settings all mattered in that run."""
    path = tmp_path / "run.jsonl"
    record(path, ControlPlan("ds2"))
    refused = {refusal.guard for decision in recorded(path) for refusal in decision.refused}
    assert {"boundary", "warm_up", "slot_budget"} <= refused
    plain = CliRunner().invoke(app, ["decide", str(path), "--policy", "ds2", "--guards"])
    assert [json.loads(line)["parallelism"] for line in plain.stdout.splitlines()] != [
        decision.parallelism for decision in recorded(path)
    ]
    assert again(path) == recorded(path)


def test_each_run_of_a_file_has_its_own_policy(tmp_path: Path) -> None:
    path = tmp_path / "run.jsonl"
    record(path, ControlPlan("ds2"))
    record(path, ControlPlan(Nephele(NepheleParameters(utilization_max=0.5))))
    assert again(path) == recorded(path)


def test_the_loop_on_the_simulator(tmp_path: Path) -> None:
    path, plan = tmp_path / "run.jsonl", ControlPlan("nephele", interval=1)
    model = find_workload("primetest", "two-cores")
    with Recorder(path, header_of(plan, model.name)) as recorder:
        simulate(model, plan.create_policy(SLOTS), seconds=90, recorder=recorder)
    assert len({decision.parallelism["tester"] for decision in recorded(path)}) >= 3
    assert again(path) == recorded(path)


def test_another_policy_is_asked_as_it_would_have_decided_there(tmp_path: Path) -> None:
    path = tmp_path / "run.jsonl"
    record(path, ControlPlan("static", recommend=True))
    other = again(path, "--policy", "ds2", "--set", "guards.scale_down_window_s=0")
    assert {decision.policy for decision in other} == {"ds2"}
    assert max(decision.parallelism["work"] for decision in other) == SLOTS - 2, "source and sink take two"


def refused(*arguments: str) -> str:
    result = CliRunner().invoke(app, ["decide", *arguments])
    assert (result.exit_code, result.stdout) == (2, "")
    return result.stderr


def test_what_does_not_tell_how_it_ran_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "run.jsonl"
    record(path, ControlPlan("ds2"))
    old = tmp_path / "old.jsonl"
    old.write_text(path.read_text().replace('"version":2', '"version":1', 1))
    assert "recorded by an older Penstock (version 1, now 2)" in refused(str(old), "--as-run")
    alone = tmp_path / "alone.json"
    alone.write_bytes(msgspec.json.encode(loaded(100, 1)))
    own = tmp_path / "own.jsonl"
    record(own, ControlPlan(CountingPolicy()))
    assert "policy 'counting' is none of Penstock's" in refused(str(own), "--as-run")
    assert "nothing says which policy ran" in refused(str(alone), "--as-run")


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["--as-run", "--guards"], "--as-run has the guards already"),
        (["--as-run", "--set", "ds2.headroom=1"], "--set needs --policy"),
        ([], "--policy is missing; for a recording, --as-run takes what it ran with"),
    ],
)
def test_options_that_contradict_each_other(tmp_path: Path, arguments: list[Any], words: str) -> None:
    path = tmp_path / "run.jsonl"
    record(path, ControlPlan("ds2"))
    assert words in refused(str(path), *arguments)


def test_a_recording_that_was_cut_off_is_decided_as_far_as_it_goes(tmp_path: Path) -> None:
    path = tmp_path / "run.jsonl"
    record(path, ControlPlan("ds2"))
    path.write_bytes(path.read_bytes()[:-40])
    assert again(path) == recorded(path)[:-1]
