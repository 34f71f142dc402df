"""Constraints as metrics: what was measured and what came of it; what is not known is absent."""

import time

from msgspec.structs import replace

from penstock.observe.prometheus import measured, totals
from penstock.observe.reported import CommitTotals, Metrics
from penstock.stats.snapshot import ConstraintSpec, KeyGroupStats, Snapshot, TaskStats


def constraint_metrics(constraint: ConstraintSpec) -> dict[str, float]:
    work = TaskStats(kind="task", parallelism=1, latency_ms=3.0)
    snapshot = Snapshot(interval_s=5, tasks={"work": work}, constraints=[constraint])
    return {
        sample.name.removeprefix("penstock_constraint_"): sample.value
        for family in measured(snapshot)
        for sample in family.samples
        if sample.labels.get("constraint") == "fast"
    }


def test_sources_tell_how_far_they_are_behind_and_what_arrives() -> None:
    tasks = {
        "orders": TaskStats(kind="source", parallelism=1, lag_items=40, rate_total=100.0),
        "clock": TaskStats(kind="source", parallelism=1),
        "work": TaskStats(kind="task", parallelism=1),
    }
    said = [
        (sample.name, sample.labels["source"], sample.value)
        for family in measured(Snapshot(interval_s=5, tasks=tasks))
        for sample in family.samples
        if "source" in sample.labels
    ]
    assert said == [
        ("penstock_source_lag_items", "orders", 40),
        ("penstock_source_arriving_items_per_second", "orders", 100),
    ]


def test_constraints_are_there_with_percentiles_and_verdict() -> None:
    bare = ConstraintSpec(name="fast", sequence=["work"], latency_ms=20)
    assert constraint_metrics(bare) == {"bound_seconds": 0.02, "latency_seconds": 0.003}
    seen = replace(bare, p95_ms=40.0, p99_ms=50.0, held=False)
    assert constraint_metrics(seen) == {
        "bound_seconds": 0.02,
        "latency_seconds": 0.003,
        "p95_seconds": 0.04,
        "p99_seconds": 0.05,
        "held": 0.0,
    }


def test_commits_by_marks_are_counted_and_the_last_one_is_told() -> None:
    def said(metrics: Metrics) -> dict[str, float]:
        names = ("penstock_commit", "penstock_epochs")
        samples = [sample for family in totals(metrics) for sample in family.samples]
        return {sample.name: sample.value for sample in samples if sample.name.startswith(names)}

    assert said(Metrics({}, {})) == {}, "boundaries are not counted"
    assert said(Metrics({}, {}, commits=CommitTotals())) == {
        "penstock_commits_total": 0,
        "penstock_epochs_void_total": 0,
    }
    commits = CommitTotals().voided().committed(7, time.monotonic() - 2, 40.0, {})
    found = said(Metrics({}, {}, commits=commits))
    age_s = found.pop("penstock_commit_age_seconds")
    assert 2 <= age_s < 10
    assert found == {
        "penstock_commits_total": 1,
        "penstock_epochs_void_total": 1,
        "penstock_commit_epoch": 7,
        "penstock_commit_duration_seconds": 0.04,
    }


def test_state_and_the_heaviest_group_of_keys_are_told_where_they_are_known() -> None:
    groups = [KeyGroupStats(group=3, processed=30.0), KeyGroupStats(group=9, processed=10.0)]
    tasks = {
        "count": TaskStats(kind="task", parallelism=1, state_bytes=4096, key_groups=groups),
        "out": TaskStats(kind="sink", parallelism=1),
    }
    samples = [
        sample for family in measured(Snapshot(interval_s=1, tasks=tasks)) for sample in family.samples
    ]
    found = {(one.name, one.labels["task"]): one.value for one in samples if "task" in one.labels}
    assert found["penstock_task_state_bytes", "count"] == 4096
    assert found["penstock_task_heaviest_group_ratio", "count"] == 0.75
    assert not [name for name, task in found if task == "out" and ("state" in name or "group" in name)]
