"""ScaleReactively: bottlenecks, several constraints, floors, missing data."""

import math
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from penstock.policy.scaling import ScalingRules, keep_forward_equal, scale_reactively
from penstock.policy.scaling_bottlenecks import is_bottleneck, resolved_parallelism
from penstock.policy.scaling_model import FitLimits
from penstock.stats.snapshot import decode_snapshot, encode_snapshot
from tests.policy.snapshots import TESTER, pipeline, prime_test

RULES = ScalingRules()


def test_rebalance_by_hand() -> None:
    # b = 50 * 0.08 / 0.1333 = 30.008, W(50) = 8 ms, so a = 8 * (50 - b); the limit is 0.2 * (20 - 0.08).
    scaling = scale_reactively(prime_test(), RULES)
    busy = 50 * 0.08 / 0.1333
    assert scaling.replicas == {"prime": math.ceil(8 * (50 - busy) / (0.2 * 19.92) + busy)} == {"prime": 71}
    assert not scaling.infeasible
    (reason,) = scaling.reasons
    assert reason.rule == "rebalance"
    assert (reason.task, reason.before, reason.after) == ("prime", 50, 71)
    assert reason.prediction is not None
    assert reason.why == "the fewest replicas that keep the queues of c1 within 3.98 ms"


def test_a_bound_that_cannot_be_kept_is_reported() -> None:
    scaling = scale_reactively(prime_test(max=70), RULES)
    assert scaling.replicas == {"prime": 70}
    assert scaling.infeasible == {"c1"}
    assert [reason.rule for reason in scaling.reasons] == ["rebalance", "infeasible"]
    assert scaling.reasons[1].why == (
        "with all the replicas it may have c1 would still queue 4 ms, more than 3.98 ms:"
        " relax it or allow more replicas"
    )


@given(st.floats(1, 1000), st.floats(1, 1000))
def test_replicas_fall_as_the_bound_grows(one_ms: float, two_ms: float) -> None:
    tight, loose = (scale_reactively(prime_test(bound_ms=b), RULES) for b in sorted((one_ms, two_ms)))
    assert loose.replicas["prime"] <= tight.replicas["prime"]


def test_a_loose_bound_stops_at_the_utilization_limit() -> None:
    scaling = scale_reactively(prime_test(bound_ms=1e6), RULES)
    assert scaling.replicas == {"prime": math.ceil(50 * 0.08 / 0.1333 / 0.9)}


def test_the_fit_can_be_limited() -> None:
    free = scale_reactively(prime_test(queue_wait_ms=80.0), RULES)
    held = scale_reactively(prime_test(queue_wait_ms=80.0), ScalingRules(fit_limits=FitLimits(0.8, 1.2)))
    assert held.replicas["prime"] < free.replicas["prime"]


def test_a_queue_that_is_worked_off_keeps_its_replicas_unless_the_fit_is_limited() -> None:
    draining = prime_test(queue_wait_ms=20_000.0, interarrival_cv=1.0, parallelism=60, max=60)
    assert scale_reactively(draining, RULES).replicas == {"prime": 60}
    limited = scale_reactively(draining, ScalingRules(fit_limits=FitLimits(0.8, 1.2)))
    assert limited.replicas["prime"] < 60


def test_the_public_code_allows_less_queueing() -> None:
    scaling = scale_reactively(prime_test(), ScalingRules(queue_limit="public_code"))
    busy = 50 * 0.08 / 0.1333
    assert scaling.replicas == {"prime": math.ceil(8 * (50 - busy) / (0.9 * 0.2 * 19.92 / 2) + busy)}


@pytest.mark.parametrize(
    ("changes", "expected"),
    [
        ({"utilization": 0.99}, 100),
        ({"interarrival_ms": 0.08 / 1.3}, 130),
        ({"utilization": 1.0, "max": 60}, 60),
        ({"utilization": 1.0, "parallelism": 7}, 14),
    ],
)
def test_a_bottleneck_gets_at_least_twice_the_replicas(changes: dict[str, Any], expected: int) -> None:
    scaling = scale_reactively(prime_test(**changes), RULES)
    assert scaling.replicas == {"prime": expected}
    assert scaling.reasons[0].rule == "resolve_bottlenecks"
    assert not scaling.infeasible


@pytest.mark.parametrize(
    ("changes", "what"),
    [({"max": 50}, "its maximum of 50"), ({"elastic": False}, "a fixed number of replicas")],
)
def test_a_bottleneck_that_cannot_grow_is_infeasible(changes: dict[str, Any], what: str) -> None:
    scaling = scale_reactively(prime_test(utilization=1.0, **changes), RULES)
    assert scaling.infeasible
    assert scaling.replicas == {"prime": 50}
    assert scaling.reasons[0].why == (
        f"prime is a bottleneck (utilization 1.00) and has {what}: scaling cannot help"
    )


@given(st.integers(1, 300), st.floats(0.99, 20), st.none() | st.integers(1, 400))
def test_resolving_halves_the_load_or_reaches_the_maximum(
    replicas: int, load: float, most: int | None
) -> None:
    task = prime_test(parallelism=replicas, max=most, utilization=load).tasks["prime"]
    assert is_bottleneck(task, 0.99)
    wanted = resolved_parallelism(task)
    assert wanted >= replicas
    assert wanted == max(replicas, most or 0) or load * replicas / wanted <= 0.5 + 1e-9


@pytest.mark.parametrize("field", ["service_ms", "service_cv", "interarrival_ms", "interarrival_cv"])
def test_missing_data_scales_nothing(field: str) -> None:
    changes: dict[str, Any] = {field: None}
    scaling = scale_reactively(prime_test(**changes), RULES)
    assert scaling.replicas == {}
    assert not scaling.infeasible
    assert [r.why for r in scaling.reasons] == [
        f"prime.{field} was not measured, so nothing is scaled for c1"
    ]


def test_queue_wait_comes_from_the_channel_when_it_was_not_measured() -> None:
    # channel latency 9 ms less 1 ms of batching is the 8 ms of the other tests
    assert scale_reactively(prime_test(queue_wait_ms=None), RULES).replicas == {"prime": 71}
    unknown = scale_reactively(prime_test(queue_wait_ms=None, stream={"latency_ms": None}), RULES)
    assert unknown.replicas == {}
    assert unknown.reasons[0].why == "prime.queue_wait_ms was not measured, so nothing is scaled for c1"


def two_constraints(first_ms: float, second_ms: float) -> Any:
    raw: dict[str, Any] = {
        "version": 2,
        "interval_s": 5,
        "tasks": {
            "source": {"kind": "source", "parallelism": 1},
            "filter": TESTER,
            "other": {"kind": "source", "parallelism": 1},
        },
        "streams": [{"from": "source", "to": "filter"}, {"from": "other", "to": "filter"}],
        "constraints": [
            {"name": "c1", "sequence": ["source->filter", "filter"], "latency_ms": first_ms},
            {"name": "c2", "sequence": ["other->filter", "filter"], "latency_ms": second_ms},
        ],
    }
    return decode_snapshot(raw)


@given(st.floats(1, 500), st.floats(1, 500))
def test_the_tighter_of_two_constraints_on_a_task_wins(first_ms: float, second_ms: float) -> None:
    both = scale_reactively(two_constraints(first_ms, second_ms), RULES).replicas["filter"]
    tighter = min(first_ms, second_ms)
    assert both == scale_reactively(prime_test(bound_ms=tighter), RULES).replicas["prime"]


def test_a_fixed_task_counts_with_the_wait_it_has() -> None:
    raw = pipeline([0.5, 0.5], wiring="round_robin", tasks={"t0": TESTER, "t1": {"queue_wait_ms": 5.0}})
    scaling = scale_reactively(raw, RULES)
    # 0.2 * (50 - 0.08 - 2.0) less the 5 ms that t1 waits anyway
    busy = 50 * 0.08 / 0.1333
    assert scaling.replicas == {"t0": math.ceil(8 * (50 - busy) / (0.2 * 47.92 - 5) + busy)}


def test_forward_pipelines_keep_equal_replicas() -> None:
    elastic = {name: {"elastic": True, "max": 30} for name in ("t0", "t1", "t2")}
    snapshot = pipeline([0.5, 0.5, 0.5], tasks=elastic)
    assert keep_forward_equal(snapshot, {"t0": 3, "t1": 9}) == {"t0": 9, "t1": 9, "t2": 9}
    apart = pipeline([0.5, 0.5, 0.5], tasks=elastic, wiring="round_robin")
    assert keep_forward_equal(apart, {"t0": 3, "t1": 9}) == {"t0": 3, "t1": 9}
    assert keep_forward_equal(snapshot, {}) == {}


def test_the_snapshot_is_left_as_it_was() -> None:
    snapshot = prime_test()
    before = encode_snapshot(snapshot)
    scale_reactively(snapshot, RULES)
    assert encode_snapshot(snapshot) == before


def chained(chains: list[list[str]], **second: object) -> Any:
    """t0 takes 3 ms for an item, t1, joined to it, 2 ms for half of them; 4 items come every 8 ms."""
    measured = {"elastic": True, "max": 30, "processed_total": 1000.0, "queue_wait_ms": 4.0}
    load = {"service_ms": 3.0, "service_cv": 1.0, "interarrival_ms": 8.0, "interarrival_cv": 1.0}
    alone = {"service_ms": 2.0, "service_cv": 0.5, "processed_total": 500.0, **second}
    return pipeline(
        [0.4, 0.1], tasks={"t0": {**measured, **load}, "t1": {**measured, **alone}}, chains=chains
    )


IN_CHAIN = {"queue_wait_ms": 0.0}
"""What is measured of a task in the process of another: nothing arrives there, and nothing waits."""


def test_a_chain_is_scaled_as_one_server() -> None:
    scaling = scale_reactively(chained([["t0", "t1"]], **IN_CHAIN), RULES)
    assert set(scaling.replicas) == {"t0"}
    (reason,) = [one for one in scaling.reasons if one.rule == "rebalance"]
    # 3 ms and half of 2 ms; their variances, 9 and half of 1, add up
    assert reason.inputs is not None
    assert reason.inputs["service_ms"] == 4.0
    assert reason.inputs["service_cv"] == pytest.approx(math.sqrt(9.5) / 4.0)
    # b = 4 * 4 / 8 = 2 replicas are busy, and W(4) = 4 ms is a / (4 - b); task latencies are 2 and 2 ms
    limit_ms = 0.2 * (50 - 4)
    assert scaling.replicas["t0"] == max(math.ceil(8 / limit_ms + 2), math.ceil(2 / RULES.utilization_max))
    equal = keep_forward_equal(chained([["t0", "t1"]], **IN_CHAIN), scaling.replicas)
    assert equal["t1"] == equal["t0"] == scaling.replicas["t0"]


def test_apart_the_same_task_needs_measurements_of_its_own() -> None:
    assert scale_reactively(chained([["t0"], ["t1"]], **IN_CHAIN), RULES).replicas == {}


def test_a_chain_that_is_busy_all_the_time_is_a_bottleneck_though_none_of_its_tasks_is() -> None:
    snapshot = chained([["t0", "t1"]], service_ms=9.0, utilization=0.7, **IN_CHAIN)
    scaling = scale_reactively(snapshot, RULES)
    assert scaling.replicas == {"t0": math.ceil(2 * 4 * (3.0 / 8.0 + 0.7))}
    assert scaling.reasons[0].rule == "resolve_bottlenecks"


def test_a_chain_of_which_something_is_unknown_is_not_scaled() -> None:
    scaling = scale_reactively(chained([["t0", "t1"]], service_ms=None, **IN_CHAIN), RULES)
    assert scaling.replicas == {}
    assert scaling.reasons[0].why == "t0.service_ms was not measured, so nothing is scaled for live"


def test_a_constraint_inside_a_chain_leaves_its_replicas_alone() -> None:
    snapshot = chained([["t0", "t1"]], **IN_CHAIN)
    inside = replace(snapshot.constraints[0], sequence=["t1", "t1->sink"])
    assert scale_reactively(replace(snapshot, constraints=[inside]), RULES).replicas == {}
