"""A source with a backlog, in the simulator: policies drain it in the time that the source says."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise
from typing import TYPE_CHECKING

import pytest

from penstock.policy.registry import create_policy
from penstock.sim.distributions import Deterministic
from penstock.sim.engine import SimulatedEngine
from penstock.sim.load import Curve
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


def slow_source(replicas: int, seconds: float) -> FlowModel:
    """400 items/s arrive in the first time, then 40; a replica of the source reads 200."""
    load = Curve.steps([(seconds, 400.0), (600.0, 40.0)])
    flow = pipeline(rate=400.0, sources=replicas, replicas=8, service_s=0.005, gaps=Deterministic())
    source = replace(flow.tasks[0], service_s=0.005, load=load, catch_up_s=30.0, minimum=1, maximum=6)
    return replace(flow, tasks=(source, *flow.tasks[1:]))


@pytest.mark.parametrize("policy", ["ds2", "nephele"])
def test_a_source_is_scaled_like_a_task_and_seldom(policy: str) -> None:
    engine = SimulatedEngine(slow_source(1, 60.0), seconds=120.0)
    decider = create_policy(policy)
    memory, lags, replicas = decider.initial_memory(), [], []
    for _ in range(24):
        snapshot = observed(engine)
        decision, memory = decider.decide(snapshot, memory)
        lags.append(snapshot.tasks["source"].lag_items or 0.0)
        replicas.append(snapshot.tasks["source"].parallelism)
        engine.apply(decision)
    assert lags[0] > 900, "one replica reads half of what arrives"
    assert max(lags[8:]) < 100, "and is caught up with after 30 s, and one interval to begin with"
    assert [before for before, after in pairwise(replicas) if before != after] == [1, replicas[8]]
    assert 3 <= replicas[8] <= 4
    assert replicas[-1] == 1
    assert engine.source_backlog + engine.items == pytest.approx(400 * 60 + 40 * 60, abs=1)
