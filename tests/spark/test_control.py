"""The closed loop on real Spark: measured, decided and applied while items flow."""

import json
import time
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession
from typer.testing import CliRunner

import penstock as ps
from penstock.cli.main import app
from penstock.control.control import Control, ControlPlan
from penstock.control.recording import read_decisions, read_snapshots
from penstock.control.status import IN_CHECKPOINT, read_status
from penstock.policy.ds2 import Ds2
from penstock.testing.collector import Collector
from tests.spark.items import Item, assert_exactly_once, numbered

pytestmark = pytest.mark.spark
SERVICE_S = 0.004
AT_ONCE = ("guards.warm_up_s=0",)


def wait_a_little(item: Item) -> Item:
    time.sleep(SERVICE_S)
    return item


def overloaded(collector: Collector, count: int, pool: int = 8) -> ps.Flow:
    """600 items a second for a task that does 250 per replica."""
    flow = ps.Flow("overloaded")
    source = flow.source(numbered(count, rate=600), name="numbers")
    source.map(wait_a_little, name="work", parallelism=ps.elastic(1, 8, pool=pool)).sink(
        collector, name="out"
    )
    flow.constrain("50 ms", ["numbers->work", "work", "work->out"])
    return flow


def test_policy_scales_a_running_flow_and_the_recording_can_be_replayed(
    spark: SparkSession, collector: Collector, tmp_path: Path
) -> None:
    recording = tmp_path / "run.jsonl"
    job = ps.run(overloaded(collector, 5000, pool=2), sampling=0.5)
    control = Control(job, ControlPlan("ds2", AT_ONCE, interval="1 s", recording=recording))
    assert job.await_termination(90)
    control.join(10)
    assert control.problem is None
    assert 3 <= job.metrics().tasks["work"].active <= 8
    assert job.status.state == "stopped"
    assert_exactly_once(collector.items(), 5000)
    snapshots = list(read_snapshots(recording))
    assert len(snapshots) == len(control.cycles())
    assert list(read_decisions(recording)) == job.decisions()
    scaled = next(entry for entry in job.decisions() if entry.decision.parallelism["work"] >= 3)
    assert scaled.effect is not None
    assert scaled.effect.pools["work"] >= 3, "the need had left the pool"
    assert scaled.effect.after_ms is not None
    assert scaled.effect.gap_ms is not None
    assert scaled.observed is not None
    assert scaled.observed.parallelism == scaled.decision.parallelism
    assert read_status(recording).state == "stopped"
    assert read_status(recording).decisions[-1] == job.decisions()[-1]
    measured = [snapshot for snapshot in snapshots if snapshot.tasks["work"].service_ms is not None]
    assert measured
    service_ms = [float(snapshot.tasks["work"].service_ms or 0) for snapshot in measured]
    assert min(service_ms) > SERVICE_S * 1000 * 0.95
    replayed = CliRunner().invoke(app, ["decide", str(recording), "--policy", "ds2"])
    assert replayed.exit_code == 0, replayed.output
    assert len([json.loads(line) for line in replayed.stdout.splitlines()]) == len(snapshots)


def test_boundaries_that_the_timer_of_commits_begins_are_not_taken_for_load(
    spark: SparkSession, collector: Collector
) -> None:
    job = ps.run(overloaded(collector, 5000), sampling=0.5, commit="4 s")
    control = Control(job, ControlPlan("static", AT_ONCE, interval="1 s"))
    assert job.await_termination(90)
    control.join(10)
    refused = {refusal.guard for entry in job.decisions() for refusal in entry.decision.refused}
    assert "boundary" in refused
    assert all(entry.effect is None for entry in job.decisions()), "no decision took a boundary"
    assert_exactly_once(collector.items(), 5000)


def test_recommending_changes_nothing(spark: SparkSession, collector: Collector) -> None:
    job = ps.run(overloaded(collector, 3000), sampling=0.5)
    control = Control(job, ControlPlan("ds2", AT_ONCE, interval="1 s", apply=False))
    assert job.await_termination(90)
    control.join(10)
    assert job.metrics().tasks["work"].active == 1
    assert all(entry.effect is None for entry in job.decisions())
    assert max(cycle.decision.parallelism["work"] for cycle in control.cycles()) >= 3


def test_slot_budget_and_checkpoint_status(spark: SparkSession, collector: Collector, tmp_path: Path) -> None:
    place = tmp_path / IN_CHECKPOINT
    job = ps.run(overloaded(collector, 2500), sampling=0.5)
    plan = ControlPlan("ds2", (*AT_ONCE, "guards.slot_budget=4"), interval="1 s", status=place)
    control = Control(job, plan)
    deadline = time.monotonic() + 10
    while not place.exists():
        assert time.monotonic() < deadline, "the status is there from the start"
        time.sleep(0.01)
    assert read_status(tmp_path).state == "running"
    assert job.await_termination(90)
    control.join(10)
    assert job.metrics().tasks["work"].active == 2, "source and sink take one slot each"
    assert any(r.guard == "slot_budget" for cycle in control.cycles() for r in cycle.decision.refused)
    assert read_status(tmp_path).flow == "overloaded"
    assert_exactly_once(collector.items(), 2500)


def test_flow_outlives_its_controller(
    spark: SparkSession,
    collector: Collector,
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
    caplog: pytest.LogCaptureFixture,
) -> None:
    def broken(*arguments: Any) -> Any:
        raise ZeroDivisionError("no policy")

    monkeypatch.setattr(Ds2, "decide", broken)
    job = ps.run(overloaded(collector, 1000), sampling=0.5)
    control = Control(job, ControlPlan("ds2", AT_ONCE, interval="1 s", status=tmp_path / IN_CHECKPOINT))
    assert job.await_termination(90)
    control.join(10)
    assert control.problem is not None
    assert "keeps its last configuration" in control.problem
    assert "no policy" in caplog.text
    assert read_status(tmp_path).problem == control.problem
    assert read_status(tmp_path).state == "stopped"
    assert_exactly_once(collector.items(), 1000)
