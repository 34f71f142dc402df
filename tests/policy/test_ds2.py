"""The policy `ds2` without its manager's delays: one step, no oscillation, limits, missing data."""

from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.policy.ds2 import Ds2, Ds2Parameters
from penstock.policy.registry import create_policy
from penstock.stats.snapshot import Snapshot, TaskStats
from tests.policy.linear_flows import WORD_COUNT, LinearFlow, Operator, linear_flows, parallelisms


def decide(snapshot: Snapshot, **settings: Any) -> Any:
    policy = Ds2(Ds2Parameters(**settings))
    return policy.decide(snapshot, policy.initial_memory())[0]


def with_task(snapshot: Snapshot, name: str, **changes: Any) -> Snapshot:
    task = msgspec.structs.replace(snapshot.tasks[name], **changes)
    return msgspec.structs.replace(snapshot, tasks={**snapshot.tasks, name: task})


def test_registered() -> None:
    assert create_policy("ds2").name == "ds2"


def test_word_count_in_one_step() -> None:
    decision = decide(WORD_COUNT.snapshot({"flat_map": 1, "count": 1}))
    assert decision.parallelism == {"flat_map": 10, "count": 20}
    assert decision.feasible
    reason = decision.reasons[0]
    assert (reason.rule, reason.task, reason.before, reason.after) == ("ds2", "flat_map", 1, 10)
    assert reason.inputs["selectivity"] == pytest.approx(20)
    assert reason.prediction["utilization"] == pytest.approx(1.0)
    assert "16666.7 items/s come in and a replica can process 1666.67: 10 needed" in reason.why


@given(st.data())
def test_linear_operators_settle_after_one_step_and_stay(data: st.DataObject) -> None:
    flow = data.draw(linear_flows())
    fixed = {name for name, operator in flow.operators.items() if not operator.elastic}
    policy = Ds2(Ds2Parameters())
    memory = policy.initial_memory()
    parallelism = data.draw(parallelisms(flow))
    visited = []
    for _ in range(4):
        decision, memory = policy.decide(flow.snapshot(parallelism), memory)
        assert fixed.isdisjoint(decision.parallelism)
        parallelism = {**parallelism, **decision.parallelism}
        visited.append(decision.parallelism)
    assert visited[0] == visited[1] == visited[2] == visited[3]


@given(st.data())
def test_decisions_are_deterministic_and_within_limits(data: st.DataObject) -> None:
    flow = data.draw(linear_flows())
    limits = data.draw(st.tuples(st.integers(1, 5), st.integers(5, 12)))
    snapshot = flow.snapshot(data.draw(parallelisms(flow)))
    for name in flow.operators:
        snapshot = with_task(snapshot, name, min=limits[0], max=limits[1])
    first, second = decide(snapshot), decide(snapshot)
    assert first == second
    assert all(limits[0] <= count <= limits[1] for count in first.parallelism.values())


def test_beyond_the_maximum_is_infeasible_and_says_so() -> None:
    snapshot = with_task(WORD_COUNT.snapshot({"flat_map": 1, "count": 1}), "count", max=12)
    decision = decide(snapshot)
    assert decision.parallelism == {"flat_map": 10, "count": 12}
    assert not decision.feasible
    assert any("count needs 20 replicas and may have 12" in reason.why for reason in decision.reasons)


def test_a_task_that_cannot_be_scaled_is_walked_through_and_reported() -> None:
    snapshot = with_task(WORD_COUNT.snapshot({"flat_map": 2, "count": 1}), "flat_map", elastic=False)
    decision = decide(snapshot)
    assert decision.parallelism == {"count": 20}
    assert not decision.feasible
    assert any(
        "flat_map needs 10 replicas and has a fixed parallelism of 2" in r.why for r in decision.reasons
    )


def test_headroom_is_applied_once_per_task_at_the_end() -> None:
    decision = decide(WORD_COUNT.snapshot({"flat_map": 1, "count": 1}), headroom=0.5)
    assert decision.parallelism == {"flat_map": 15, "count": 30}


def test_shared_workers_need_the_sum() -> None:
    decision = decide(WORD_COUNT.snapshot({"flat_map": 1, "count": 1}), execution="shared_workers")
    assert decision.parallelism == {"flat_map": 30, "count": 30}
    assert decision.feasible


def test_shared_workers_include_tasks_that_are_not_elastic() -> None:
    snapshot = with_task(WORD_COUNT.snapshot({"flat_map": 1, "count": 1}), "count", elastic=False)
    decision = decide(snapshot, execution="shared_workers")
    assert decision.parallelism == {"flat_map": 30}
    assert decision.feasible


@pytest.mark.parametrize("task", ["flat_map", "count"])
def test_a_task_that_was_not_measured_stops_every_action(task: str) -> None:
    snapshot = WORD_COUNT.snapshot({"flat_map": 1, "count": 1})
    bare = TaskStats(kind="task", parallelism=1, elastic=True)
    decision = decide(msgspec.structs.replace(snapshot, tasks={**snapshot.tasks, task: bare}))
    assert decision.parallelism == {"flat_map": 1, "count": 1}
    assert decision.reasons[0].rule == "missing_data"
    lacks = "processed_total or useful_s, and the instances of all its replicas"
    assert decision.reasons[0].why.startswith(f"{task!r} lacks {lacks}: rates are unknown")


def test_what_is_missing_is_named() -> None:
    snapshot = WORD_COUNT.snapshot({"flat_map": 1, "count": 1})
    unrated = decide(with_task(snapshot, "source", rate_total=None))
    assert unrated.reasons[0].why.startswith("'source' lacks rate_total: ")
    silent = decide(with_task(snapshot, "flat_map", emitted_total=None, instances=None))
    assert silent.reasons[0].why.startswith("'flat_map' lacks emitted_total: ")
    assert unrated.parallelism == silent.parallelism == {"flat_map": 1, "count": 1}


def test_an_idle_task_keeps_its_replicas_and_others_act() -> None:
    flow = LinearFlow(
        {"a": 100.0, "b": 0.0},
        {"busy": Operator(10.0), "quiet": Operator(10.0)},
        [("a", "busy"), ("b", "quiet")],
    )
    decision = decide(flow.snapshot({"busy": 1, "quiet": 7}))
    assert decision.parallelism == {"busy": 10, "quiet": 7}
    assert decision.reasons[1].rule == "ds2_idle"


def test_unknown_setting_is_refused() -> None:
    with pytest.raises(msgspec.ValidationError, match="target_rate_ratio"):
        msgspec.convert({"target_rate_ratio": 0.5}, Ds2Parameters)
