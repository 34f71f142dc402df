"""All guards around a policy: never an action on bad data, never outside the limits."""

import math
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.policy.guards.compose import guarded
from penstock.policy.guards.parameters import GuardParameters
from penstock.policy.keep import current_parallelism
from penstock.policy.registry import create_policy, policy_names
from penstock.stats.snapshot import InstanceStats, Snapshot, TaskStats
from tests.policy.guards.scripted import Scripted, snapshot, task
from tests.policy.linear_flows import WORD_COUNT

FREE = GuardParameters(
    scale_down_window_s=0,
    cool_down_intervals=0,
    max_step_down=None,
    ineffective_gain=None,
    rollback_tolerance=None,
)


def with_task(one: Snapshot, name: str, **changes: Any) -> Snapshot:
    return msgspec.structs.replace(
        one, tasks={**one.tasks, name: msgspec.structs.replace(one.tasks[name], **changes)}
    )


def test_it_is_the_policy_it_wraps() -> None:
    inside = create_policy("ds2")
    policy = guarded(inside)
    assert (policy.name, policy.parameters) == ("ds2", inside.parameters)


def test_a_good_proposal_passes_untouched() -> None:
    policy = guarded(create_policy("ds2"))
    decision, _ = policy.decide(WORD_COUNT.snapshot({"flat_map": 1, "count": 1}), policy.initial_memory())
    assert decision.parallelism == {"flat_map": 10, "count": 20}
    assert decision.refused == []


@pytest.mark.parametrize("name", policy_names())
@pytest.mark.parametrize(
    "changes",
    [
        {"processed_total": math.nan},
        {"utilization": math.inf},
        {"service_ms": math.nan},
        {"instances": [InstanceStats(useful_s=1.0, processed=1.0, emitted=1.0)]},
    ],
)
def test_no_policy_acts_on_bad_data(name: str, changes: dict[str, Any]) -> None:
    policy = guarded(create_policy(name), FREE)
    one = with_task(WORD_COUNT.snapshot({"flat_map": 2, "count": 2}), "flat_map", **changes)
    memory = policy.initial_memory()
    for step in range(3):
        decision, memory = policy.decide(with_task(one, "count", cpu=step / 10), memory)
        assert decision.parallelism == {"flat_map": 2, "count": 2}
        assert decision.batch_lifetime_ms == {}
        assert decision.refused[0].guard == "missing_data"
        assert decision.reasons[0].why.startswith("no action: ")


def test_the_policy_does_not_see_refused_data() -> None:
    policy = guarded(Scripted({"a": 2}, {"a": 3}), FREE)
    memory = policy.initial_memory()
    bad = snapshot({"a": task(1, processed_total=None)})
    _, memory = policy.decide(bad, memory)
    assert memory.policy == 0
    decision, _ = policy.decide(snapshot(a=1), memory)
    assert decision.parallelism == {"a": 2}


def test_a_repeated_snapshot_is_not_acted_on() -> None:
    policy = guarded(Scripted({"a": 1}, {"a": 3}), FREE)
    memory = policy.initial_memory()
    _, memory = policy.decide(snapshot(a=1), memory)
    decision, _ = policy.decide(snapshot(a=1), memory)
    assert decision.parallelism == {"a": 1}
    assert decision.refused[0].guard == "stale_data"


def test_a_task_the_policy_forgot_stays() -> None:
    policy = guarded(Scripted({}, parallelism={"a": 2}), FREE)
    decision, _ = policy.decide(snapshot(a=1, b=4), policy.initial_memory())
    assert decision.parallelism == {"a": 2, "b": 4}


def test_undoing_a_change_does_not_wait_for_the_cool_down() -> None:
    patient = GuardParameters(
        scale_down_window_s=0, cool_down_intervals=200, max_step_down=None, rollback_settle_s=5
    )
    policy = guarded(Scripted({"a": 2}), patient)
    memory = policy.initial_memory()
    first, memory = policy.decide(snapshot({"a": task(4, processed_total=100.0)}), memory)
    for processed in (50.0, 51.0, 52.0):
        last, memory = policy.decide(snapshot({"a": task(2, processed_total=processed)}), memory)
    assert [first.parallelism, last.parallelism] == [{"a": 2}, {"a": 4}]


counts = st.integers(1, 30)


@given(
    st.lists(st.tuples(counts, counts), min_size=1, max_size=10),
    st.integers(1, 5),
    st.integers(5, 20),
    st.integers(2, 40),
)
def test_never_outside_limits_or_budget_and_deterministic(
    wanted: list[tuple[int, int]], least: int, most: int, slots: int
) -> None:
    parameters = GuardParameters(slot_budget=slots, scale_down_window_s=5, cool_down_intervals=1)
    policy = guarded(Scripted(*[{"a": a, "b": b} for a, b in wanted]), parameters)
    memory = policy.initial_memory()
    now = {"a": least, "b": least}
    for step in range(len(wanted)):
        tasks: dict[str, TaskStats] = {
            name: task(count, min=least, max=most, processed_total=50.0 + step) for name, count in now.items()
        }
        one = snapshot(tasks)
        decision, after = policy.decide(one, memory)
        assert (decision, after) == policy.decide(one, memory)
        assert all(least <= count <= most for count in decision.parallelism.values())
        assert 1 + sum(decision.parallelism.values()) <= max(slots, 1 + sum(now.values()))
        held_back = {refusal.task for refusal in decision.refused}
        for name, count in decision.parallelism.items():
            assert count == wanted[step][name == "b"] or name in held_back or _on_its_own(decision, name)
        memory, now = after, current_parallelism(one) | decision.parallelism


def _on_its_own(decision: Any, name: str) -> bool:
    """Held back as part of the whole: by an inspector, or by being undone."""
    return any(reason.rule in ("stale_data", "rollback") for reason in decision.reasons)
