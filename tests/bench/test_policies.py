"""The sections of bench `policies`, on runs that are small or made by hand."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import TYPE_CHECKING

import matplotlib
import pytest
import typer
from typer.testing import CliRunner

from penstock.bench import experiments, figures, policies
from penstock.bench.jobs import Job, run_all, run_one
from penstock.policy.registry import create_policy
from penstock.sim.run import Run, simulate
from penstock.sim.workloads import livestream, primetest, wordcount
from tests.sim.flows import pipeline

if TYPE_CHECKING:
    from pathlib import Path

    from penstock.sim.model import FlowModel


def small_livestream() -> dict[str, Run]:
    jobs = experiments.livestream_jobs(quick=True)
    return {name: run_one(job) for name, job in jobs.items()}


def test_livestream_is_faster_and_cheaper_when_chained(tmp_path: Path) -> None:
    runs = small_livestream()
    found, checks = policies.livestream_section(runs)
    assert all(check.ok for check in checks)
    assert runs["batching and chaining"].points[-1].chains == [["decoder", "merger", "overlay", "encoder"]]
    assert found["batching"]["paper"] == {"mean_ms": 40}
    figures.draw_livestream(runs, tmp_path / "livestream.png")
    assert (tmp_path / "livestream.png").read_bytes().startswith(b"\x89PNG")


def test_ds2_finds_the_optimum_of_word_count_in_one_step(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    job = Job(wordcount.heron, policy="ds2", settings=("ds2.policy_interval_s=60",), seconds=100.0)
    runs = {"DS2 on Heron": run_one(job)}
    found, checks = policies.wordcount_section(runs)
    assert found["DS2 on Heron"]["path"] == [[1, 1], [10, 20]]
    assert all(check.ok for check in checks)
    monkeypatch.setitem(matplotlib.rcParams, "svg.fonttype", "none")
    figures.draw_wordcount(runs, tmp_path / "wordcount.svg")
    drawn = (tmp_path / "wordcount.svg").read_text()
    assert all(f">{words}</text>" in drawn for words in ("Word count, simulated", "10", "20"))


def test_every_experiment_is_named_once_and_can_be_built() -> None:
    for quick in (True, False):
        for make in (
            experiments.primetest_jobs,
            experiments.batching_jobs,
            experiments.twitter_jobs,
            experiments.livestream_jobs,
            experiments.wordcount_jobs,
            experiments.storm_jobs,
            experiments.table_jobs,
        ):
            for job in make(quick=quick).values():
                flow: FlowModel = job.model(*job.arguments, **job.options)
                assert flow.tasks


def test_all_policies_run_on_all_workloads_of_the_table() -> None:
    names = set(experiments.table_jobs(quick=False))
    workloads = ("primetest", "twitter", "livestream", "wordcount", "classifier")
    assert names == {experiments.table_name(w, p) for w in workloads for p in experiments.SETTINGS}


def test_jobs_run_side_by_side_as_they_do_alone() -> None:
    job = Job(livestream.model, options={"pipelines": 4, "seconds": 10.0}, policy="nephele")
    jobs = {"one": job, "two": job}
    runs = run_all(jobs)
    assert list(runs) == ["one", "two"]
    assert runs["one"].points == runs["two"].points == run_one(job).points


@pytest.mark.parametrize(("rate", "kept"), [(100.0, True), (1_000.0, False)])
def test_a_bottleneck_is_a_rate_that_is_not_sent(rate: float, kept: bool) -> None:
    options = {"rate": rate, "replicas": 2, "work": {"queue_items": 50}}
    assert policies.keeps_up(run_one(Job(pipeline, options=options, seconds=20.0))) is kept


def test_the_public_code_leaves_a_margin_that_the_printed_formulas_do_not(tmp_path: Path) -> None:
    jobs = experiments.primetest_jobs(quick=True)
    short = {"share": 1 / 32, "step_s": 10.0}
    runs = {name: run_one(replace(job, options=short)) for name, job in jobs.items()}
    found, checks = policies.primetest_section(runs)
    narrow, printed = found["20 ms"], found[experiments.AS_PRINTED]
    assert narrow["share_held"] >= printed["share_held"]
    assert narrow["task_hours"] >= printed["task_hours"]
    assert narrow["share_within_5_percent"] >= narrow["share_held"]
    assert narrow["paper"] == {
        "share_held": 0.926,
        "p95_ms": 30,
        "task_hours": 50.8,
        "worker_hours": 21.9,
        "cpu": 0.659,
    }
    assert [check.value for check in checks][:2] == [narrow["share_held"], narrow["p95_ms"]]
    for draw in (figures.draw_primetest, figures.draw_trade_off):
        draw(runs, tmp_path / "primetest.png")


def test_the_highest_rate_is_the_last_one_without_a_bottleneck(tmp_path: Path) -> None:
    short = Job(pipeline, options={"rate": 100.0, "replicas": 2, "work": {"queue_items": 50}}, seconds=20.0)
    kept = run_one(short)
    late = run_one(replace(short, options={**short.options, "rate": 1_000.0}))
    name = experiments.batching_name
    runs = {name(None, 40_000): kept, name(None, 45_000): late, name(100, 50_000): kept}
    found, checks = policies.batching_section(runs)
    assert found["immediate"] == {"highest_rate": 40_000, "paper": 40_000}
    assert found["100 ms"] == {"highest_rate": 50_000, "paper": 60_000}
    assert checks[0].value == 1.25
    figures.draw_batching(runs, tmp_path / "batching.png")


def test_what_is_drawn_and_what_is_printed_come_from_the_same_runs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    runs = {"livestream": small_livestream()}
    monkeypatch.setattr(
        figures, "run_experiments", lambda _effort, only: {name: runs[name] for name in only or runs}
    )
    monkeypatch.setattr(figures, "PICTURES", {"live": ("livestream", figures.draw_livestream)})
    app = typer.Typer()
    app.command()(figures.main)
    result = CliRunner().invoke(app, [str(tmp_path / "pictures"), "--quick"])
    assert result.exit_code == 0
    assert json.loads(result.stdout)["figures"].keys() == {"livestream"}
    assert [path.name for path in (tmp_path / "pictures").iterdir()] == ["live.png"]
    wrong = CliRunner().invoke(app, [str(tmp_path / "none"), "--only", "nothing"])
    assert wrong.exit_code == 2
    assert not (tmp_path / "none").exists()


def test_the_unelastic_baseline_is_measured_by_its_best_interval() -> None:
    run = simulate(primetest.unelastic(), create_policy("static"), seed=1, seconds=5.0)
    found = policies._unelastic(run)
    assert found["lowest_mean_ms"] == run.points[0].latency_ms["prime"]
    assert found["lowest_p95_ms"] == run.points[0].p95_ms["prime"]
    assert found["task_hours"] == pytest.approx(175 * 5.0 / 3600.0)


def test_twitter_is_measured_on_both_constraints(tmp_path: Path) -> None:
    jobs = experiments.twitter_jobs(quick=True)
    runs = {name: run_one(replace(job, seconds=60.0)) for name, job in jobs.items()}
    found, _ = policies.twitter_section(runs)
    assert found["public code"]["topics_p95_ms"] == pytest.approx(215.0, rel=0.1)
    assert 0.0 < found["public code"]["sentiments_held"] <= 1.0
    figures.draw_twitter(runs, tmp_path / "twitter.png")


def test_storm_metrics_and_picture(tmp_path: Path) -> None:
    jobs = experiments.storm_jobs(quick=True)
    runs = {name: run_one(replace(job, seconds=500.0)) for name, job in jobs.items()}
    found, _ = policies.storm_section(runs)
    for metrics in found.values():
        assert 0.0 < metrics["processed"] <= 1.0
        assert metrics["saved_nodes"] < 1.0
        assert metrics["throughput_degradation"] >= 0.0
    figures.draw_storm(runs, tmp_path / "storm.png")
