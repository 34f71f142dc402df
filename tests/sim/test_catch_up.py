"""A source with a backlog, in the simulator: policies drain it in the time that the source says."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from penstock.policy.registry import create_policy
from penstock.sim.distributions import Deterministic
from penstock.sim.engine import SimulatedEngine
from tests.sim.flows import observed, pipeline

if TYPE_CHECKING:
    from penstock.sim.model import FlowModel

INTERVAL_S = 5.0


def overloaded(catch_up_s: float | None) -> FlowModel:
    """400 items/s arrive, and the one replica there is at the start takes 100."""
    flow = pipeline(
        rate=400.0, sources=1, replicas=1, service_s=0.01, gaps=Deterministic(), work={"queue_items": 50}
    )
    return replace(flow, tasks=(replace(flow.tasks[0], catch_up_s=catch_up_s), *flow.tasks[1:]))


def lags(name: str, catch_up_s: float | None, intervals: int) -> list[tuple[float, int]]:
    """By interval: what has piled up, and the replicas that are wanted then."""
    engine = SimulatedEngine(overloaded(catch_up_s), seconds=INTERVAL_S * intervals)
    policy = create_policy(name)
    memory, seen = policy.initial_memory(), []
    for _ in range(intervals):
        snapshot = observed(engine)
        decision, memory = policy.decide(snapshot, memory)
        seen.append((snapshot.tasks["source"].lag_items or 0.0, decision.parallelism["work"]))
        engine.apply(decision)
    return seen


def test_ds2_drains_a_backlog_in_time_and_then_takes_the_replicas_away() -> None:
    left = lags("ds2", None, 12)
    assert left[-1][0] > 500, "four replicas take what arrives, and nothing is drained"
    drained = lags("ds2", 30.0, 12)
    assert drained[0][0] > 1000
    assert {lag for lag, _ in drained[7:]} == {0.0}, "30 s later, and one interval to begin with"
    assert {replicas for lag, replicas in drained if lag} == {5}
    assert drained[-1][1] == 4


def test_nephele_drains_it_in_time_without_doubling() -> None:
    at_once, in_time = lags("nephele", None, 12), lags("nephele", 30.0, 12)
    assert {lag for lag, _ in in_time[7:]} == {0.0}
    assert max(replicas for _, replicas in in_time) == 5
    assert max(replicas for _, replicas in at_once) == 7
