"""The scaling manager: when an estimate is acted on."""

from collections.abc import Mapping, Sequence
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.policy.decision import Decision
from penstock.policy.ds2 import Ds2, Ds2Parameters
from penstock.stats.snapshot import Snapshot
from tests.policy.linear_flows import WORD_COUNT, LinearFlow, Operator

START = {"flat_map": 1, "count": 1}
OPTIMUM = {"flat_map": 10, "count": 20}


def replay(snapshots: Sequence[Snapshot], **settings: Any) -> list[Decision]:
    """Decisions on given snapshots, whatever is decided."""
    policy = Ds2(Ds2Parameters(**settings))
    memory, decisions = policy.initial_memory(), []
    for snapshot in snapshots:
        decision, memory = policy.decide(snapshot, memory)
        decisions.append(decision)
    return decisions


def closed_loop(flow: LinearFlow, start: Mapping[str, int], steps: int, **settings: Any) -> list[Decision]:
    """Decisions on snapshots that follow them at once."""
    policy = Ds2(Ds2Parameters(**settings))
    memory, decisions, now = policy.initial_memory(), [], dict(start)
    for _ in range(steps):
        decision, memory = policy.decide(flow.snapshot(now), memory)
        decisions.append(decision)
        now = {**now, **decision.parallelism}
    return decisions


def throttled(snapshot: Snapshot, share: float) -> Snapshot:
    """The same snapshot with sources and tasks at a share of their observed rates, true rates unchanged."""
    tasks = {
        name: msgspec.structs.replace(
            task,
            processed_total=None if task.processed_total is None else task.processed_total * share,
            emitted_total=None if task.emitted_total is None else task.emitted_total * share,
            useful_s=None if task.useful_s is None else task.useful_s * share,
            instances=None,
        )
        for name, task in snapshot.tasks.items()
    }
    return msgspec.structs.replace(snapshot, tasks=tasks)


def test_waits_for_the_policy_interval_and_then_uses_all_of_it() -> None:
    decisions = replay([WORD_COUNT.snapshot(START)] * 6, policy_interval_s=30)
    acted = [decision.parallelism == OPTIMUM for decision in decisions]
    assert acted == [False, False, True, False, False, True]
    assert decisions[0].reasons[0].rule == "policy_interval"


def test_warm_up_counts_from_the_start_and_from_every_change() -> None:
    decisions = closed_loop(WORD_COUNT, START, 6, warm_up_intervals=2)
    rules = [decision.reasons[0].rule for decision in decisions]
    assert rules == ["warm_up", "warm_up", "ds2", "warm_up", "warm_up", "ds2"]
    assert decisions[2].parallelism == OPTIMUM
    assert "interval 1 of 2" in decisions[0].reasons[0].why


def rates(*per_s: float) -> list[Snapshot]:
    return [LinearFlow({"s": rate}, {"t": Operator(10.0)}, [("s", "t")]).snapshot({"t": 1}) for rate in per_s]


@pytest.mark.parametrize(("rule", "replicas"), [("last", 5), ("max", 9), ("median", 5)])
def test_activation_combines_the_last_proposals(rule: str, replicas: int) -> None:
    decisions = replay(rates(30, 90, 50), activation_intervals=3, activation=rule)
    assert [d.parallelism["t"] for d in decisions] == [1, 1, replicas]
    held = decisions[1].refused[0]
    assert (held.guard, held.task, held.before, held.after) == (
        "ds2.activation",
        "t",
        1,
        {"last": 9, "max": 9, "median": 9}[rule],
    )
    assert held.why == "evaluation 2 of 3"


def test_minor_changes_are_ignored_unless_some_task_moves_more() -> None:
    near = replay([WORD_COUNT.snapshot({"flat_map": 9, "count": 21})], min_change=2)[0]
    assert near.parallelism == {"flat_map": 9, "count": 21}
    assert {refusal.guard for refusal in near.refused} == {"ds2.min_change"}
    far = replay([WORD_COUNT.snapshot({"flat_map": 9, "count": 22})], min_change=2)[0]
    assert far.parallelism == OPTIMUM


def test_target_rate_ratio_adds_what_true_rates_do_not_show_and_keeps_it() -> None:
    slow = throttled(WORD_COUNT.snapshot(OPTIMUM), 0.8)
    corrected = {"flat_map": 13, "count": 25}
    policy = Ds2(Ds2Parameters(target_rate_ratio=1.1))
    first, memory = policy.decide(slow, policy.initial_memory())
    assert first.parallelism == corrected
    assert first.reasons[0].rule == "target_rate_ratio"
    again, memory = policy.decide(slow, memory)
    assert again.parallelism == corrected, "not yet in effect: the correction is not applied twice"
    then, _ = policy.decide(WORD_COUNT.snapshot(corrected), memory)
    assert then.parallelism == corrected


def test_target_rate_ratio_within_its_limit_changes_nothing() -> None:
    slow = throttled(WORD_COUNT.snapshot(OPTIMUM), 0.95)
    assert replay([slow], target_rate_ratio=1.1)[0].parallelism == OPTIMUM


def test_number_of_decisions_is_limited_until_the_load_changes() -> None:
    snapshots = rates(100, 105, 109, 300)
    decisions = replay(snapshots, max_decisions=1)
    assert [d.parallelism["t"] for d in decisions] == [10, 1, 1, 30]
    assert decisions[1].refused[0].guard == "ds2.max_decisions"


def test_a_decision_that_was_not_applied_yet_is_repeated_and_counted_once() -> None:
    decisions = replay([WORD_COUNT.snapshot(START)] * 3, max_decisions=1)
    assert [d.parallelism for d in decisions] == [OPTIMUM] * 3


def test_rolls_back_what_made_things_worse_and_does_not_try_it_again() -> None:
    good = WORD_COUNT.snapshot({"flat_map": 12, "count": 24})
    bad = throttled(WORD_COUNT.snapshot(OPTIMUM), 0.7)
    former = {"flat_map": 12, "count": 24}
    decisions = replay([good, bad, bad, bad, good, good])
    assert [d.parallelism for d in decisions] == [OPTIMUM, OPTIMUM, OPTIMUM, former, former, former]
    assert decisions[3].reasons[0].rule == "rollback"
    assert {refusal.guard for refusal in decisions[4].refused} == {"ds2.rollback"}


def test_rolls_back_only_what_is_measured_under_the_same_load() -> None:
    good = WORD_COUNT.snapshot({"flat_map": 12, "count": 24})
    doubled = LinearFlow({"source": 2e6 / 60}, WORD_COUNT.operators, WORD_COUNT.edges)
    decisions = replay([good, doubled.snapshot(OPTIMUM)])
    assert decisions[1].parallelism == {"flat_map": 20, "count": 40}


def test_roll_back_can_be_switched_off() -> None:
    good = WORD_COUNT.snapshot({"flat_map": 12, "count": 24})
    bad = throttled(WORD_COUNT.snapshot(OPTIMUM), 0.7)
    assert replay([good, bad, bad, bad], rollback_tolerance=None)[3].parallelism == OPTIMUM


@given(
    per_s=st.lists(st.floats(1, 1e4), min_size=1, max_size=8),
    intervals=st.integers(1, 4),
    rule=st.sampled_from(["last", "max", "median"]),
)
def test_activation_never_leaves_the_range_of_its_proposals(
    per_s: list[float], intervals: int, rule: str
) -> None:
    decisions = replay(rates(*per_s), activation_intervals=intervals, activation=rule)
    proposals = [replay([snapshot])[0].parallelism["t"] for snapshot in rates(*per_s)]
    for decision in decisions:
        assert decision.parallelism["t"] == 1 or min(proposals) <= decision.parallelism["t"] <= max(proposals)
