"""The replicas of a source follow what arrives and what it is behind by, and not every change of it."""

from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.policy.catch_up import backlogs
from penstock.policy.decision import Decision
from penstock.policy.registry import create_policy
from penstock.policy.source_scaling import SourcePlan, scale_sources
from penstock.stats.snapshot import Snapshot, decode_snapshot

EACH_PER_S = 1000.0


def reading(replicas: int, arrives_per_s: float, lag_items: float = 0.0, **source: Any) -> Snapshot:
    """A replica takes 1 ms for an item; 5 s in which they read what arrived, or as much as they can."""
    read_per_s = min(arrives_per_s, replicas * EACH_PER_S)
    orders = {
        "kind": "source",
        "parallelism": replicas,
        "elastic": True,
        "max": 8,
        "rate_total": arrives_per_s,
        "lag_items": lag_items,
        "processed_total": 5 * read_per_s,
        "useful_s": 5 * read_per_s / EACH_PER_S / replicas,
        **source,
    }
    work = {"kind": "task", "parallelism": 4, "elastic": True, "processed_total": 5 * read_per_s}
    constraint = {"name": "c", "latency_ms": 100, "sequence": ["orders->work", "work"]}
    return decode_snapshot(
        {
            "version": 2,
            "interval_s": 5,
            "tasks": {"orders": orders, "work": {**work, "useful_s": 2.0, "emitted_total": 0.0}},
            "streams": [{"from": "orders", "to": "work"}],
            "constraints": [constraint],
        }
    )


def planned(snapshot: Snapshot) -> SourcePlan:
    return scale_sources(snapshot, backlogs(snapshot))


def decided(policy: str, snapshot: Snapshot) -> Decision:
    made = create_policy(policy)
    return made.decide(snapshot, made.initial_memory())[0]


@pytest.mark.parametrize(
    ("replicas", "arrives_per_s", "wanted"),
    [
        (1, 800, 1),  # busy, and it keeps up
        (1, 900, 2),
        (1, 2100, 3),
        (2, 2100, 3),
        (4, 2500, 4),  # five would be needed to take one away that way
        (4, 1400, 3),
        (4, 10, 1),
        (8, 9000, 8),
    ],
)
def test_as_many_as_are_busy_for_most_of_their_time_and_the_same_within_a_band(
    replicas: int, arrives_per_s: float, wanted: int
) -> None:
    assert planned(reading(replicas, arrives_per_s)).replicas == {"orders": wanted}


def test_what_it_is_behind_by_counts_over_the_time_to_catch_up() -> None:
    assert planned(reading(2, 1000.0, 30_000)).replicas == {"orders": 2}
    assert planned(reading(2, 1000.0, 30_000, catch_up_s=30.0)).replicas == {"orders": 3}
    assert planned(reading(2, 1000.0, 30_000, catch_up_s=10.0)).replicas == {"orders": 6}
    assert planned(reading(8, 1000.0, 30_000, catch_up_s=30.0)).replicas == {"orders": 8}, (
        "not before drained"
    )
    assert planned(reading(8, 1000.0, 0, catch_up_s=30.0)).replicas == {"orders": 2}


def test_it_is_said_in_words() -> None:
    (grown,) = planned(reading(1, 2100)).reasons
    assert grown.why == (
        "orders must read 2100 items/s and a replica can read 1000: 3 are busy for 70% of their time,"
        " 1 for 210%"
    )
    (kept,) = planned(reading(1, 800)).reasons
    assert kept.why.endswith("1 are busy for 80% of their time, which is not worth a boundary")
    full = planned(reading(8, 7500))
    assert full.reasons[0].why.endswith("8, which is all it may have, are busy for 94% of their time")
    assert full.feasible
    short = planned(reading(8, 9000))
    assert short.reasons[0].why.endswith("13 needed, and it may have 8, so that it falls behind")
    assert not short.feasible


@pytest.mark.parametrize(
    "unknown", [{"rate_total": None}, {"useful_s": None}, {"processed_total": 0.0}, {"useful_s": 0.0}]
)
def test_what_was_not_measured_changes_nothing(unknown: dict[str, Any]) -> None:
    plan = planned(reading(3, 100, **unknown))
    assert plan.replicas == {"orders": 3}
    assert "was not measured" in plan.reasons[0].why


def test_numbers_beyond_all_measure_are_no_trouble() -> None:
    endless = planned(reading(3, 1e308, max=None, useful_s=1e-3, processed_total=1e-9))
    assert endless.replicas["orders"] > 1000
    assert not endless.feasible


def test_a_source_that_is_not_elastic_is_left_out() -> None:
    assert planned(reading(1, 5000, elastic=False)) == SourcePlan()


@given(st.floats(1, 20_000), st.integers(1, 8), st.floats(0.85, 1.2))
def test_a_change_is_not_followed_by_another_while_the_load_stays(
    arrives_per_s: float, replicas: int, drift: float
) -> None:
    first = planned(reading(replicas, arrives_per_s)).replicas["orders"]
    if first > replicas:
        again = planned(reading(first, arrives_per_s * drift)).replicas["orders"]
        assert again == first, "neither taken back nor repeated, also if the load moves somewhat"
    assert planned(reading(first, arrives_per_s)).replicas["orders"] == first


@pytest.mark.parametrize("policy", ["ds2", "nephele"])
def test_policies_scale_sources_with_reasons(policy: str) -> None:
    decision = decided(policy, reading(1, 2100, 500.0))
    assert decision.parallelism["orders"] == 3
    assert any("orders must read 2100 items/s" in reason.why for reason in decision.reasons)
    behind = reading(1, 900, 50_000, catch_up_s=10.0)
    decision = decided(policy, behind)
    assert decision.parallelism["orders"] == 8
    rules = [reason.rule for reason in decision.reasons if reason.task == "orders"]
    assert sorted(rules) == ["catch_up", "source"]
    assert not decided(policy, reading(8, 9000)).feasible


@pytest.mark.parametrize("policy", ["threshold", "mape", "dhalion", "static"])
def test_others_leave_them_alone(policy: str) -> None:
    full = {"utilization": 1.0, "service_ms": 1.0, "baseline_service_ms": 1.0, "backlog_total": 90_000.0}
    snapshot = reading(2, 9000, **full)
    for _ in range(2):
        assert decided(policy, snapshot).parallelism["orders"] == 2
        snapshot = msgspec.structs.replace(snapshot, interval_s=600.0)
