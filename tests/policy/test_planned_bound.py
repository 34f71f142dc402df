"""The part of a bound that is planned with."""

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.policy.decision import Decision
from penstock.policy.nephele import Nephele, NepheleParameters
from penstock.policy.planned_bound import plan_bounds
from tests.policy.snapshots import prime_test

# Of the two streams: 2 x (9 - 1) ms less the 8 ms that items queue before the tester.
TRANSPORT_MS = 8.0


def planned_ms(**changes: object) -> float:
    planned, _ = plan_bounds(prime_test(bound_ms=80, **changes), 0.8, "measured")  # type: ignore[arg-type]
    return planned.constraints[0].latency_ms


def test_the_thesis_plans_with_all_of_it() -> None:
    planned, reasons = plan_bounds(prime_test(), 1.0, "ignored")
    assert planned == prime_test()
    assert not reasons


def test_transport_and_room_for_error_come_off() -> None:
    planned, reasons = plan_bounds(prime_test(bound_ms=80), 0.8, "measured")
    assert planned.constraints[0].latency_ms == pytest.approx(0.8 * 80 - TRANSPORT_MS)
    assert [reason.rule for reason in reasons] == ["planned_bound"]
    assert reasons[0].why == (
        "80% of the 80 ms of c1 may be used, and 8 ms of it goes by on the way between tasks"
    )


def test_a_queue_in_disguise_counts_up_to_an_eighth_of_the_bound() -> None:
    assert planned_ms(stream={"latency_ms": 900.0}) == pytest.approx(0.8 * 80 - 80 / 8)


def test_nothing_comes_off_for_what_was_not_measured() -> None:
    assert planned_ms(stream={"latency_ms": None}) == pytest.approx(0.8 * 80)
    assert planned_ms(queue_wait_ms=50.0) == pytest.approx(0.8 * 80)


def evidence(decision: Decision, rule: str, name: str) -> list[float]:
    found = [{**(r.inputs or {}), **(r.prediction or {})}[name] for r in decision.reasons if r.rule == rule]
    return [float(value) for value in found if value is not None]


@given(share=st.floats(0.5, 1.0), bound_ms=st.floats(10.0, 500.0))
def test_parts_of_the_plan_add_up_to_the_share(share: float, bound_ms: float) -> None:
    """Batching, queues, service and transport together, for a transport within an eighth of the bound."""
    policy = Nephele(NepheleParameters(bound_share=share, transport="measured"))
    snapshot = prime_test(bound_ms=bound_ms)
    decision, _ = policy.decide(snapshot, policy.initial_memory())
    batching_ms = math.fsum(evidence(decision, "adjust_lifetimes", "target_ms"))
    queues_ms = evidence(decision, "rebalance", "queue_wait_limit_ms")[0]
    service_ms = snapshot.tasks["prime"].service_ms or 0.0
    transport_ms = min(TRANSPORT_MS, bound_ms / 8)
    assert batching_ms + queues_ms + service_ms + transport_ms == pytest.approx(share * bound_ms)


@given(wait_ms=st.floats(0.0, 30.0), yields=st.floats(0.0, 1.0))
def test_they_add_up_to_no_more_when_batching_yields(wait_ms: float, yields: float) -> None:
    """As long as the queue is within its limit."""
    policy = Nephele(NepheleParameters(batching_yield=yields))
    snapshot = prime_test(bound_ms=40.0, queue_wait_ms=wait_ms)
    decision, _ = policy.decide(snapshot, policy.initial_memory())
    batching_ms = math.fsum(evidence(decision, "adjust_lifetimes", "target_ms"))
    queues_ms = evidence(decision, "rebalance", "queue_wait_limit_ms")[0]
    service_ms = snapshot.tasks["prime"].service_ms or 0.0
    assert batching_ms + min(wait_ms, queues_ms) + service_ms <= 40.0 + 1e-9
