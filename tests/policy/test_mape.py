"""States, windows in a row, steps, the pool and the guard on E."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.policy.decision import Decision
from penstock.policy.mape import Mape, MapeMemory, MapeParameters
from penstock.policy.registry import create_from_settings
from penstock.stats.snapshot import Snapshot, TaskStats

BUSY: dict[str, Any] = {
    "processed_total": 1000.0,
    "backlog_total": 9000.0,
    "service_ms": 25.0,
    "baseline_service_ms": 24.0,
}
QUIET: dict[str, Any] = {**BUSY, "processed_total": 10.0, "backlog_total": 0.0}
FAIR: dict[str, Any] = {**BUSY, "backlog_total": 2000.0}
FULL: dict[str, Any] = {**BUSY, "baseline_service_ms": 2.0}


def snapshot(fields: dict[str, Any], replicas: int = 1, **limits: Any) -> Snapshot:
    task = TaskStats(kind="task", parallelism=replicas, elastic=True, **fields, **limits)
    return Snapshot(interval_s=25, tasks={"t": task})


def run(*snapshots: Snapshot, **settings: Any) -> list[Decision]:
    policy = Mape(MapeParameters(**settings))
    memory, decisions = policy.initial_memory(), []
    for one in snapshots:
        decision, memory = policy.decide(one, memory)
        decisions.append(decision)
    return decisions


def replicas(*snapshots: Snapshot, **settings: Any) -> list[int]:
    return [decision.parallelism["t"] for decision in run(*snapshots, **settings)]


def test_acts_when_two_windows_agree() -> None:
    assert replicas(snapshot(BUSY), snapshot(BUSY)) == [1, 2]
    assert replicas(snapshot(QUIET, 5), snapshot(QUIET, 5)) == [5, 4]
    assert replicas(snapshot(FAIR, 2), snapshot(FAIR, 2), snapshot(FAIR, 2)) == [2, 2, 2]


def test_windows_that_differ_do_not_count_together() -> None:
    assert replicas(snapshot(BUSY, 3), snapshot(QUIET, 3), snapshot(BUSY, 3)) == [3, 3, 3]


def test_reason_gives_the_metrics_and_the_state() -> None:
    reason = run(snapshot(BUSY), snapshot(BUSY))[1].reasons[0]
    assert reason.inputs is not None
    assert set(reason.inputs) == {"U", "Q", "E", "delta"}
    assert reason.why.startswith("overloaded with delta 0.8")
    assert reason.why.endswith("for 2 of 2 windows in a row")


def test_a_large_execution_time_forbids_adding_replicas() -> None:
    decision = run(snapshot(FULL), snapshot(FULL))[1]
    assert decision.parallelism == {"t": 1}
    refused = decision.refused[0]
    assert (refused.guard, refused.before, refused.after) == ("mape.execution_limit", 1, 2)
    assert "the machines are overloaded" in refused.why


def test_step_pool_and_limits() -> None:
    assert replicas(snapshot(BUSY), snapshot(BUSY), step=3)[1] == 4
    many = {**BUSY, "processed_total": 50_000.0, "backlog_total": 9e6}
    assert replicas(snapshot(many, 50), snapshot(many, 50))[1] == 50
    assert replicas(snapshot(BUSY, max=1), snapshot(BUSY, max=1))[1] == 1
    assert replicas(snapshot(QUIET, 4, min=4), snapshot(QUIET, 4, min=4))[1] == 4
    assert replicas(snapshot(QUIET, 1), snapshot(QUIET, 1))[1] == 1


def test_windows_are_gathered_from_shorter_snapshots() -> None:
    assert replicas(*[snapshot(BUSY)] * 4, window_s=50) == [1, 1, 1, 2]


def test_utilization_or_queue_alone() -> None:
    slow = {**BUSY, "backlog_total": 0.0}
    assert replicas(snapshot(slow), snapshot(slow), weights=(1.0, 0.0, 0.0))[1] == 2
    assert replicas(snapshot(slow, 2), snapshot(slow, 2), weights=(0.0, 1.0, 0.0))[1] == 1


@pytest.mark.parametrize("name", list(BUSY))
def test_missing_data_stops_everything_and_breaks_the_row(name: str) -> None:
    partial = snapshot({**BUSY, name: None})
    decisions = run(snapshot(BUSY), partial, snapshot(BUSY))
    assert [decision.parallelism["t"] for decision in decisions] == [1, 1, 1]
    assert decisions[1].reasons[0].why == f"'t' lacks {name}; nothing changes until it is measured"


def test_weights_by_setting() -> None:
    policy = create_from_settings("mape", ["mape.weights=[0.5, 0.4, 0.1]", "mape.step=2"])
    assert policy.parameters == MapeParameters(weights=(0.5, 0.4, 0.1), step=2)


@given(
    st.lists(st.sampled_from([BUSY, QUIET, FAIR, FULL]), min_size=1, max_size=20),
    st.integers(1, 3),
    st.integers(1, 4),
)
def test_one_step_at_a_time_and_always_within_limits(
    windows: list[dict[str, Any]], step: int, least: int
) -> None:
    policy = Mape(MapeParameters(step=step))
    memory: MapeMemory = policy.initial_memory()
    now = least
    for window in windows:
        decision, memory = policy.decide(snapshot(window, now, min=least, max=6), memory)
        assert abs(decision.parallelism["t"] - now) <= step
        assert least <= decision.parallelism["t"] <= 6
        now = decision.parallelism["t"]
