"""Dhalion: one task at a time grows by its share of back-pressure."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.policy.decision import Decision
from penstock.policy.dhalion import Dhalion, DhalionParameters
from penstock.stats.snapshot import InstanceStats, Snapshot, StreamStats, TaskStats


def task(replicas: int, backlog: float | None, processed: float | None = 1000.0, **more: Any) -> TaskStats:
    fields: dict[str, Any] = {"kind": "task", "elastic": True, **more}
    return TaskStats(parallelism=replicas, backlog_total=backlog, processed_total=processed, **fields)


def snapshot(a: TaskStats, b: TaskStats, **source: Any) -> Snapshot:
    return Snapshot(
        interval_s=60,
        tasks={"s": TaskStats(kind="source", parallelism=1, **source), "a": a, "b": b},
        streams=[StreamStats(origin="s", receiver="a"), StreamStats(origin="a", receiver="b")],
    )


def run(*snapshots: Snapshot, **settings: Any) -> list[Decision]:
    policy = Dhalion(DhalionParameters(**settings))
    memory, decisions = policy.initial_memory(), []
    for one in snapshots:
        decision, memory = policy.decide(one, memory)
        decisions.append(decision)
    return decisions


def test_only_the_worst_task_grows_by_its_queue() -> None:
    decision = run(snapshot(task(2, 500.0), task(4, 1000.0)))[0]
    assert decision.parallelism == {"a": 2, "b": 8}
    assert decision.reasons[0].why == "'b' holds the flow up 50.0% of the time"


def test_throttled_sources_count_too() -> None:
    halved = {"rate_total": 100.0, "emitted_total": 3000.0}
    decision = run(snapshot(task(2, 100.0), task(4, 0.0), **halved))[0]
    assert decision.parallelism == {"a": 4, "b": 4}


def test_growth_is_at_most_fivefold() -> None:
    assert run(snapshot(task(2, 1e9), task(4, 0.0)))[0].parallelism == {"a": 10, "b": 4}


def test_noise_is_ignored_and_nothing_ever_shrinks() -> None:
    decision = run(snapshot(task(2, 10.0), task(40, 0.0)))[0]
    assert decision.parallelism == {"a": 2, "b": 40}
    assert decision.reasons[0].rule == "healthy"


def test_skew_has_no_cure() -> None:
    uneven = [InstanceStats(processed=900.0), InstanceStats(processed=100.0)]
    decision = run(snapshot(task(2, 5000.0, instances=uneven), task(4, 0.0)))[0]
    assert decision.parallelism == {"a": 2, "b": 4}
    assert decision.reasons[0].rule == "skew"
    assert "processes 1.80 times the mean" in decision.reasons[0].why


def test_a_fixed_bottleneck_is_infeasible() -> None:
    decision = run(snapshot(task(2, 5000.0, elastic=False), task(4, 0.0)))[0]
    assert decision.parallelism == {"b": 4}
    assert not decision.feasible
    assert "fixed parallelism of 2" in decision.reasons[0].why


def test_limit_is_respected_and_reported() -> None:
    decision = run(snapshot(task(2, 5000.0, max=3), task(4, 0.0)))[0]
    assert decision.parallelism["a"] == 3
    assert not decision.feasible


@pytest.mark.parametrize(("backlog", "processed"), [(None, 1.0), (1.0, None)])
def test_missing_data_stops_everything(backlog: float | None, processed: float | None) -> None:
    decision = run(snapshot(task(2, 5000.0), task(4, backlog, processed)))[0]
    assert decision.parallelism == {"a": 2, "b": 4}
    assert decision.reasons[0].rule == "missing_data"


def test_without_queues_the_busiest_task_is_blamed() -> None:
    halved = {"rate_total": 100.0, "emitted_total": 3000.0}
    decision = run(snapshot(task(2, None, utilization=0.5), task(4, None, utilization=0.9), **halved))[0]
    assert decision.parallelism == {"a": 2, "b": 8}


def test_no_elastic_task() -> None:
    fixed = {"elastic": False}
    assert run(snapshot(task(1, 1.0, **fixed), task(1, 1.0, **fixed)))[0].reasons[0].rule == "no_task"


def test_settles_at_the_start_and_after_a_change() -> None:
    slow, changed = snapshot(task(2, 1000.0), task(4, 0.0)), snapshot(task(4, 1000.0), task(4, 0.0))
    decisions = run(slow, slow, changed, changed, settle_s=60)
    assert [decision.parallelism["a"] for decision in decisions] == [2, 4, 4, 8]


def test_policy_interval() -> None:
    slow = snapshot(task(2, 2000.0), task(4, 0.0))
    decisions = run(slow, slow, policy_interval_s=120)
    assert [decision.parallelism["a"] for decision in decisions] == [2, 4]


@given(st.integers(1, 30), st.floats(0, 1e6), st.floats(0, 1e6), st.integers(1, 40))
def test_never_shrinks_and_never_leaves_its_limits(
    now: int, backlog: float, processed: float, most: int
) -> None:
    most = max(now, most)
    decision = run(snapshot(task(now, backlog, processed, max=most), task(4, 0.0)))[0]
    assert now <= decision.parallelism["a"] <= most
    assert decision.parallelism["b"] == 4
