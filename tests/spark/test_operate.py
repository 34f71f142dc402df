"""A running flow is changed and stopped by commands, as from another terminal."""

import json
import time
from pathlib import Path

import pytest
from pyspark.sql import SparkSession
from typer.testing import CliRunner, Result

import penstock as ps
from penstock.cli.main import app
from penstock.testing.collector import Collector
from tests.spark.items import assert_exactly_once, numbered
from tests.spark.test_crashes import same, wait_for

pytestmark = pytest.mark.spark


def penstock(*words: str) -> Result:
    result = CliRunner().invoke(app, words)
    assert result.exit_code == 0, result.output
    return result


def steered(collector: Collector, name: str) -> ps.Flow:
    flow = ps.Flow(name)
    numbers = flow.source(numbered(1_000_000, rate=500), name="numbers")
    numbers.map(same, name="work", parallelism=ps.elastic(1, 12, pool=4)).sink(collector, name="out")
    flow.constrain("50 ms", ["numbers->work", "work", "work->out"], name="quick")
    return flow


def test_replicas_lifetimes_and_bounds_are_set_and_the_flow_is_stopped(
    spark: SparkSession, collector: Collector, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("XDG_RUNTIME_DIR", raising=False)
    job = ps.run(steered(collector, "steered"), policy=None)
    wait_for(lambda: len(collector.items()) > 100)
    assert json.loads(penstock("ps", "--json").stdout)["flow"] == "steered"
    set_now = ["--replicas", "work=3", "--lifetime", "numbers->work=7 ms", "--bound", "quick=80 ms"]
    assert "work: 1 -> 3 replicas" in penstock("set", "steered", *set_now).stdout
    wait_for(lambda: len(job.metrics().tasks["work"].processes) == 3)
    told = json.loads(penstock("status", "steered", "--json").stdout)
    assert (told["tasks"][1]["replicas"], told["lifetimes_ms"]["numbers->work"]) == (3, 7.0)
    assert told["constraints"][0]["bound_ms"] == 80.0
    assert "stood still" in penstock("set", "--replicas", "work=6").stdout, "the pool had four"
    assert job.metrics().tasks["work"].pool == 6
    assert penstock("set", "--pause", "numbers").stdout == "numbers: paused\n"
    time.sleep(0.5)
    seen = len(collector.items())
    time.sleep(0.5)
    assert len(collector.items()) == seen
    assert "paused: numbers" in penstock("status").stdout
    job.boundary()
    assert len(collector.items()) == seen, "also in the next batch"
    penstock("set", "--resume", "numbers")
    wait_for(lambda: len(collector.items()) > seen + 100)
    job.pause("numbers")
    assert penstock("stop", "steered").stdout.startswith("steered: drained in ")
    assert job.status.state == "stopped"
    assert_exactly_once(collector.items(), len(collector.items()))


def test_a_policy_is_told_to_recommend_and_two_flows_of_one_name_are_told_apart(
    spark: SparkSession, collector: Collector, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("XDG_RUNTIME_DIR", raising=False)
    first = ps.run(steered(collector, "twin"), policy="static", interval="1 s")
    second = ps.run(steered(collector, "twin"), policy=None)
    control = first.control
    assert control is not None
    try:
        runs = [json.loads(line)["run"] for line in penstock("ps", "--json").stdout.splitlines()]
        assert len(runs) == 2
        refused = CliRunner().invoke(app, ["set", "twin", "--policy", "recommend"])
        assert refused.exit_code == 2
        assert '"twin" stands for 2 flows' in refused.stderr
        penstock("set", runs[0], "--policy", "recommend")
        assert not control.applies
        wait_for(lambda: bool(control.cycles()))
        assert "only recommending" in penstock("status", runs[0]).stdout
        penstock("set", runs[0], "--policy", "on")
        assert control.applies
    finally:
        first.stop()
        second.stop()


def test_a_directory_of_somebody_else_does_not_hurt_the_flow(
    spark: SparkSession,
    collector: Collector,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(tmp_path))
    (tmp_path / "penstock").mkdir()
    (tmp_path / "penstock").chmod(0o777)
    flow = ps.Flow("alone")
    flow.source(numbered(200), name="numbers").sink(collector, name="out")
    assert ps.run(flow).await_termination("1 min")
    assert_exactly_once(collector.items(), 200)
    assert len([text for text in caplog.messages if "do not see it" in text]) == 1
