"""The combined policy: what it decides, when it rests, and that nothing unknown makes it act."""

import math
from pathlib import Path
from typing import Any

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from penstock.policy.decision import Decision, encode_decision
from penstock.policy.nephele import Nephele, NepheleMemory, NepheleParameters
from penstock.policy.parameters import describe
from penstock.stats.snapshot import Snapshot
from tests.policy.snapshots import any_snapshot, pipeline, prime_test


def decide(snapshot: Snapshot, **parameters: Any) -> Decision:
    policy = Nephele(NepheleParameters(**parameters))
    return policy.decide(snapshot, policy.initial_memory())[0]


def rules(decision: Decision) -> list[str]:
    return [reason.rule for reason in decision.reasons]


def test_all_three_techniques_in_one_decision() -> None:
    decision = decide(prime_test())
    assert decision.policy == "nephele"
    assert decision.parallelism == {"prime": 71}
    assert decision.batch_lifetime_ms == pytest.approx({"source->prime": 8.968, "prime->sink": 8.968})
    assert decision.feasible
    assert rules(decision) == ["adjust_lifetimes", "adjust_lifetimes", "rebalance"]
    assert decide(pipeline([0.2, 0.2])).chains == [["t0", "t1"]]


@pytest.mark.parametrize("changes", [{}, {"queue_wait_ms": 2.0}, {"utilization": 1.0}])
def test_both_steps_of_rebalance_decide_alike(changes: dict[str, Any]) -> None:
    snapshot = prime_test(**changes)
    assert decide(snapshot, rebalance_step="unit") == decide(snapshot, rebalance_step="variable")


def test_each_technique_can_be_switched_off() -> None:
    quiet = decide(prime_test(), batching="off", scaling="off", chaining="off")
    assert quiet == Decision(
        policy="nephele",
        parallelism={"prime": 50},
        batch_lifetime_ms={},
        chains=[],
        feasible=True,
        reasons=[],
    )


def test_the_options_of_2012() -> None:
    slow = {"latency_ms": 30.0, "output_batch_ms": 10.0, "batch_lifetime_ms": 20.0}
    decision = decide(prime_test(stream=slow), batching="buffer_2012", scaling="off")
    assert decision.batch_lifetime_ms["source->prime"] == pytest.approx(20 * 0.98**10)
    chained = decide(pipeline([0.2, 0.2], bound_ms=1), chaining="rule_2012", batching="off")
    assert chained.chains == [["t0", "t1"]]


def test_it_rests_after_adding_replicas() -> None:
    policy = Nephele()
    memory = policy.initial_memory()
    decision, memory = policy.decide(prime_test(), memory)
    assert decision.parallelism == {"prime": 71}
    for left in (3, 2, 1):
        decision, memory = policy.decide(prime_test(parallelism=71, queue_wait_ms=30.0), memory)
        assert decision.parallelism == {"prime": 71}
        assert decision.reasons[-1].why == (
            f"replicas were added, and nothing is scaled for {left} interval(s) from here on"
        )
        assert decision.batch_lifetime_ms
    decision, memory = policy.decide(prime_test(parallelism=71, queue_wait_ms=30.0), memory)
    assert decision.parallelism["prime"] > 71


def test_it_keeps_asking_until_the_replicas_came() -> None:
    policy = Nephele(NepheleParameters(inactive_intervals=2))
    memory = policy.initial_memory()
    _, memory = policy.decide(prime_test(), memory)
    decision, memory = policy.decide(prime_test(), memory)
    assert decision.parallelism == {"prime": 71}
    # they come only now, so the two intervals begin here
    for _ in range(2):
        decision, memory = policy.decide(prime_test(parallelism=71), memory)
        assert rules(decision)[-1] == "inactive"
    decision, memory = policy.decide(prime_test(parallelism=71), memory)
    assert "inactive" not in rules(decision)


def test_no_rest_after_removing_replicas() -> None:
    policy = Nephele()
    decision, memory = policy.decide(prime_test(bound_ms=200), policy.initial_memory())
    assert decision.parallelism["prime"] < 50
    decision, memory = policy.decide(prime_test(bound_ms=200, parallelism=40), memory)
    assert "inactive" not in rules(decision)


def test_replicas_added_by_others_are_not_taken_away_at_once() -> None:
    policy = Nephele()
    _, memory = policy.decide(prime_test(bound_ms=200), policy.initial_memory())
    decision, _ = policy.decide(prime_test(bound_ms=200, parallelism=90), memory)
    assert decision.parallelism == {"prime": 90}
    assert rules(decision)[-1] == "inactive"


def test_an_infeasible_constraint_stays_infeasible_while_resting() -> None:
    policy = Nephele()
    decision, memory = policy.decide(prime_test(max=60), policy.initial_memory())
    assert (decision.parallelism, decision.feasible) == ({"prime": 60}, False)
    decision, _ = policy.decide(prime_test(max=60, parallelism=60), memory)
    assert not decision.feasible


def test_small_changes_can_be_left_out() -> None:
    assert decide(prime_test(bound_ms=39), min_change=0.04).parallelism == {"prime": 50}
    assert decide(prime_test(bound_ms=39)).parallelism == {"prime": 51}


def test_a_percentile_is_treated_as_a_mean_and_says_so() -> None:
    snapshot = prime_test()
    constraint = msgspec.structs.replace(snapshot.constraints[0], statistic="p95")
    decision = decide(msgspec.structs.replace(snapshot, constraints=[constraint]))
    assert decision.reasons[0].why == "nephele bounds the mean, and the p95 of c1 may be above"


@given(
    st.sampled_from(
        ["service_ms", "service_cv", "interarrival_ms", "interarrival_cv", "queue_wait_ms", "latency_ms"]
    ),
    st.sampled_from([None, math.nan, math.inf]),
)
def test_what_is_not_known_changes_nothing(field: str, value: float | None) -> None:
    """Even a snapshot that was made in Python and never checked."""
    snapshot = prime_test(latency_kind="read_write", stream={"latency_ms": None, "batch_lifetime_ms": None})
    task = msgspec.structs.replace(snapshot.tasks["prime"], **{field: value})
    decision = decide(msgspec.structs.replace(snapshot, tasks={**snapshot.tasks, "prime": task}))
    assert decision.parallelism == {"prime": 50}
    assert decision.batch_lifetime_ms == {}
    assert set(rules(decision)) == {"unknown"}


@settings(max_examples=300)
@given(any_snapshot(), st.integers(0, 3))
def test_any_snapshot_gets_a_sound_decision(snapshot: Snapshot, resting: int) -> None:
    policy = Nephele()
    memory = NepheleMemory(resting=resting)
    decision, after = policy.decide(snapshot, memory)
    assert (decision, after) == policy.decide(snapshot, memory)
    assert set(decision.parallelism) == set(snapshot.elastic_tasks())
    for name, count in decision.parallelism.items():
        task = snapshot.tasks[name]
        assert count == task.parallelism or task.within_limits(count) == count
    assert all(math.isfinite(value) and value >= 0 for value in decision.batch_lifetime_ms.values())
    names = [name for chain in decision.chains for name in chain]
    assert len(names) == len(set(names))
    assert encode_decision(decision)


def test_every_parameter_is_in_the_documentation() -> None:
    text = (Path(__file__).parents[2] / "docs" / "policies_nephele.md").read_text()
    table = text[text.index("## Parameters") :]
    for parameter in describe("nephele", NepheleParameters):
        row = next(line for line in table.splitlines() if f"`{parameter.name.partition('.')[2]}`" in line)
        default = "null" if parameter.default is None else str(parameter.default).removesuffix(".0")
        assert default in row
