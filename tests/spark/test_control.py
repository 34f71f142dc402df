"""The closed loop on real Spark: measured, decided and applied while items flow."""

import time
from pathlib import Path
from typing import Any

import msgspec
import pytest
from pyspark.sql import SparkSession
from typer.testing import CliRunner

import penstock as ps
from penstock.cli.main import app
from penstock.control.control_plan import DEFAULT_POLICY
from penstock.control.recording import read_decisions, read_events, read_snapshots
from penstock.control.status import IN_CHECKPOINT, read_status
from penstock.policy.decision import Decision
from penstock.policy.ds2 import Ds2
from penstock.testing.collector import Collector
from tests.spark.items import Item, assert_exactly_once, numbered

pytestmark = pytest.mark.spark
SERVICE_S = 0.004
AT_ONCE = ("guards.warm_up_s=0",)


def wait_a_little(item: Item) -> Item:
    time.sleep(SERVICE_S)
    return item


def drop(item: Item) -> None:
    """The end."""


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
    job = ps.run(
        overloaded(collector, 5000, pool=2),
        sampling=0.5,
        policy="ds2",
        settings=AT_ONCE,
        interval="1 s",
        recording=str(recording),
    )
    control = job.control
    assert job.await_termination(90)
    assert control is not None
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
    happened = [(event.kind, event.text) for event in read_events(recording)]
    assert ("commit", "batch 0 is committed") in happened, "a pool grows at a boundary"
    assert happened[-1] == ("run", "the flow is stopped")
    assert read_status(recording).decisions[-1] == job.decisions()[-1]
    measured = [snapshot for snapshot in snapshots if snapshot.tasks["work"].service_ms is not None]
    assert measured
    service_ms = [float(snapshot.tasks["work"].service_ms or 0) for snapshot in measured]
    assert min(service_ms) > SERVICE_S * 1000 * 0.95
    replayed = CliRunner().invoke(app, ["decide", str(recording), "--as-run"])
    assert replayed.exit_code == 0, replayed.output
    again = [msgspec.json.decode(line, type=Decision) for line in replayed.stdout.splitlines()]
    assert again == [entry.decision for entry in job.decisions()]
    assert any(refusal.guard == "boundary" for decision in again for refusal in decision.refused)


def test_constraints_are_kept_by_default_and_the_run_is_decided_again(
    spark: SparkSession, collector: Collector, tmp_path: Path
) -> None:
    recording, notices = tmp_path / "run.jsonl", list[str]()
    flow = overloaded(collector, 8000)
    flow.output("numbers").sink(drop, name="aside")
    flow.constrain("0.05 ms", ["numbers->aside"], name="hopeless")
    job = ps.run(flow, sampling=0.5, on_notice=notices.append, interval="1 s", recording=str(recording))
    assert any("constraint hopeless cannot be kept: its hop takes 100 us" in notice for notice in notices)
    assert job.await_termination(90)
    assert {entry.decision.policy for entry in job.decisions()} == {DEFAULT_POLICY}
    assert job.metrics().tasks["work"].active >= 3
    assert_exactly_once(collector.items(), 8000)
    replayed = CliRunner().invoke(app, ["decide", str(recording), "--as-run"])
    again = [msgspec.json.decode(line, type=Decision) for line in replayed.stdout.splitlines()]
    assert again == [entry.decision for entry in job.decisions()]


def test_a_flow_without_constraints_runs_without_a_policy(spark: SparkSession, collector: Collector) -> None:
    flow = ps.Flow("free")
    flow.source(numbered(500, rate=1000), name="numbers").sink(collector, name="out")
    job = ps.run(flow, commit="1 s")
    assert job.control is None
    assert job.await_termination(60)
    assert job.decisions() == []


def test_boundaries_that_the_timer_of_commits_begins_are_not_taken_for_load(
    spark: SparkSession, collector: Collector
) -> None:
    job = ps.run(overloaded(collector, 5000), sampling=0.5, commit="4 s", policy="static", settings=AT_ONCE)
    assert job.await_termination(90)
    refused = {refusal.guard for entry in job.decisions() for refusal in entry.decision.refused}
    assert "boundary" in refused
    assert all(entry.effect is None for entry in job.decisions()), "no decision took a boundary"
    assert_exactly_once(collector.items(), 5000)


def test_recommending_changes_nothing(spark: SparkSession, collector: Collector) -> None:
    job = ps.run(
        overloaded(collector, 3000),
        sampling=0.5,
        policy="ds2",
        settings=AT_ONCE,
        interval="1 s",
        recommend=True,
    )
    assert job.await_termination(90)
    assert job.metrics().tasks["work"].active == 1
    assert all(entry.effect is None for entry in job.decisions())
    assert max(entry.decision.parallelism["work"] for entry in job.decisions()) >= 3


def test_slot_budget_and_checkpoint_status(spark: SparkSession, collector: Collector, tmp_path: Path) -> None:
    place = tmp_path / IN_CHECKPOINT
    job = ps.run(
        overloaded(collector, 2500),
        checkpoint=tmp_path,
        sampling=0.5,
        policy="ds2",
        settings=(*AT_ONCE, "guards.slot_budget=4"),
        interval="1 s",
    )
    deadline = time.monotonic() + 10
    while not place.exists():
        assert time.monotonic() < deadline, "the status is there from the start"
        time.sleep(0.01)
    assert read_status(tmp_path).state == "running"
    assert job.await_termination(90)
    assert job.metrics().tasks["work"].active == 2, "source and sink take one slot each"
    assert any(r.guard == "slot_budget" for entry in job.decisions() for r in entry.decision.refused)
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
    job = ps.run(
        overloaded(collector, 1000),
        checkpoint=tmp_path,
        sampling=0.5,
        policy="ds2",
        settings=AT_ONCE,
        interval="1 s",
    )
    assert job.await_termination(90)
    control = job.control
    assert control is not None
    assert control.problem is not None
    assert "keeps its last configuration" in control.problem
    assert "no policy" in caplog.text
    assert read_status(tmp_path).problem == control.problem
    assert read_status(tmp_path).state == "stopped"
    assert_exactly_once(collector.items(), 1000)
