"""What holds for static, threshold, ds2, mape and dhalion alike, on any snapshot the format allows."""

import math
from typing import Any

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from penstock.policy.decision import Decision, encode_decision
from penstock.policy.guards.compose import guarded
from penstock.policy.keep import current_parallelism
from penstock.policy.registry import create_policy
from penstock.stats.snapshot import InstanceStats, Snapshot, StreamStats, TaskStats, check_snapshot
from tests.policy.linear_flows import WORD_COUNT

POLICIES = ["static", "threshold", "ds2", "mape", "dhalion"]
NEEDED = {
    "threshold": ["utilization"],
    "ds2": ["useful_s", "processed_total", "emitted_total"],
    "mape": ["processed_total", "backlog_total", "service_ms", "baseline_service_ms"],
    "dhalion": ["processed_total", "backlog_total"],
}

amount = st.none() | st.sampled_from([0.0, 1e-6, 1.0, 1e9]) | st.floats(0, 1e6)
instance = st.builds(InstanceStats, useful_s=amount, processed=amount, emitted=amount)


@st.composite
def tasks(draw: st.DrawFn) -> TaskStats:
    least = draw(st.integers(1, 5))
    most = draw(st.none() | st.integers(least, 30))
    return TaskStats(
        kind="task",
        parallelism=draw(st.integers(least, most or 40)),
        min=least,
        max=most,
        elastic=draw(st.booleans()),
        service_ms=draw(amount),
        utilization=draw(st.none() | st.floats(0, 3)),
        cpu=draw(amount),
        processed_total=draw(amount),
        emitted_total=draw(amount),
        useful_s=draw(amount),
        instances=draw(st.none() | st.lists(instance, max_size=6)),
        backlog_total=draw(amount),
        baseline_service_ms=draw(amount),
    )


@st.composite
def snapshots(draw: st.DrawFn) -> Snapshot:
    source = TaskStats(kind="source", parallelism=1, rate_total=draw(amount), emitted_total=draw(amount))
    made = Snapshot(
        interval_s=draw(st.floats(0.1, 60)),
        tasks={"s": source, "a": draw(tasks()), "b": draw(tasks()), "c": draw(tasks())},
        streams=[
            StreamStats(origin="s", receiver="a"),
            StreamStats(origin="a", receiver="b"),
            StreamStats(origin="a", receiver="c"),
            StreamStats(origin="s", receiver="c"),
        ],
    )
    check_snapshot(made)
    return made


@pytest.mark.parametrize("name", POLICIES)
@settings(max_examples=30)
@given(history=st.lists(snapshots(), min_size=1, max_size=4))
def test_any_history_gives_decisions_within_limits_with_reasons(name: str, history: list[Snapshot]) -> None:
    for policy in (create_policy(name), guarded(create_policy(name))):
        memory = policy.initial_memory()
        for snapshot in history:
            decision, after = policy.decide(snapshot, memory)
            assert (decision, after) == policy.decide(snapshot, memory)
            assert set(decision.parallelism) == set(snapshot.elastic_tasks())
            for task, count in decision.parallelism.items():
                assert count == snapshot.tasks[task].within_limits(count)
            assert decision.reasons or not snapshot.elastic_tasks()
            assert msgspec.json.decode(encode_decision(decision), type=Decision) == decision
            memory = after


def busy() -> Snapshot:
    """Word count, overloaded, with everything measured that a policy could ask for."""
    snapshot = WORD_COUNT.snapshot({"flat_map": 4, "count": 4})
    full = {
        name: msgspec.structs.replace(
            task, instances=None, service_ms=0.6, baseline_service_ms=0.6, backlog_total=1e7
        )
        for name, task in snapshot.elastic_tasks().items()
    }
    return msgspec.structs.replace(snapshot, tasks={**snapshot.tasks, **full})


@pytest.mark.parametrize("name", list(NEEDED))
def test_each_would_act_if_everything_is_there(name: str) -> None:
    policy = create_policy(name)
    _, memory = policy.decide(busy(), policy.initial_memory())
    decision, _ = policy.decide(busy(), memory)
    assert decision.parallelism != current_parallelism(busy())


@pytest.mark.parametrize(("name", "field"), [(name, field) for name in NEEDED for field in NEEDED[name]])
@pytest.mark.parametrize("value", [None, math.nan])
def test_missing_or_impossible_numbers_give_no_action_and_a_reason(
    name: str, field: str, value: float | None
) -> None:
    snapshot = busy()
    changes: dict[str, Any] = {field: value}
    broken = msgspec.structs.replace(snapshot.tasks["flat_map"], **changes)
    partial = msgspec.structs.replace(snapshot, tasks={**snapshot.tasks, "flat_map": broken})
    policy = create_policy(name)
    memory = policy.initial_memory()
    for _ in range(3):
        decision, memory = policy.decide(partial, memory)
        assert decision.parallelism == {"flat_map": 4, "count": 4}
        assert decision.reasons[0].rule == "missing_data"
        assert field in decision.reasons[0].why
