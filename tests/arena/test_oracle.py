"""The oracle: against every sequence of replicas there is, and where nobody can hold the bound."""

import itertools
from dataclasses import replace
from pathlib import Path

import msgspec
import pytest

from penstock.arena import oracle_cache
from penstock.arena.moments import moment_of
from penstock.arena.oracle import Plan, find_plan
from penstock.arena.oracle_cache import plan_for
from penstock.sim.engine import SimulatedEngine
from penstock.sim.model import FlowModel
from tests.arena.flows import INTERVAL_S, row


def best_of_all(flow: FlowModel, seed: int) -> tuple[int, float]:
    """Most intervals held, and the least that costs, over all sequences of all numbers of replicas."""
    elastic = [task for task in flow.tasks if task.elastic]
    vectors = list(itertools.product(*(range(t.bounds[0], t.bounds[1] + 1) for t in elastic)))

    def rest(engine: SimulatedEngine) -> tuple[int, float]:
        if engine.now_s >= flow.seconds:
            return 0, 0.0
        found = []
        for vector in vectors:
            fork = engine.fork()
            fork.place({task.name: n for task, n in zip(elastic, vector, strict=True)})
            fork.observe()
            assert fork.last is not None
            held, cost_s = rest(fork)
            found.append((held + moment_of(fork.last).held, cost_s + sum(vector) * INTERVAL_S))
        return min(found, key=lambda one: (-one[0], one[1]))

    return rest(SimulatedEngine(flow, seed))


@pytest.mark.parametrize(
    "flow",
    [
        row(80.0, 130.0, 55.0, 60.0),
        # A bound that is long for the interval: two replicas would hold the first one, and leave so much
        # behind that three cannot hold the others.
        row(127.0, 148.0, 148.0, bound_ms=300.0),
        row(70.0, 40.0, services_ms=(12.0, 20.0), bound_ms=90.0),
        # More than three replicas can do, and what remains of it.
        row(60.0, 200.0, 40.0, 40.0),
    ],
    ids=["one task", "debts", "two tasks", "too much"],
)
def test_nothing_is_cheaper(flow: FlowModel) -> None:
    plan = find_plan(flow, seed=1)
    assert (plan.held, plan.cost_s) == best_of_all(flow, seed=1)


def test_a_window_of_several_intervals_is_not_spent_by_one_of_them() -> None:
    """One replica holds the third interval on the credit of the first two, and breaks the next."""
    flow = row(20.0, 80.0, 80.0, 20.0, 40.0, bound_ms=300.0)
    (constraint,) = flow.constraints
    wide = msgspec.structs.replace(constraint, window_s=3 * INTERVAL_S)
    flow = replace(flow, constraints=(wide,))
    plan = find_plan(flow, seed=1)
    assert (plan.held, plan.cost_s) == best_of_all(flow, seed=1)


def test_without_enough_replicas_nothing_is_held_and_what_helps_is_still_there() -> None:
    plan = find_plan(row(400.0, 400.0), seed=1)
    assert plan.held == 0
    assert [moment.total for moment in plan.moments] == [3, 3]


def test_where_changes_restart_nothing_changes() -> None:
    flow = row(30.0, 120.0, 30.0, restart_s=1.0)
    plan = find_plan(flow, seed=1)
    assert plan.held == 3
    assert {moment.total for moment in plan.moments} == {3}
    assert find_plan(replace(flow, cluster=replace(flow.cluster, restart_s=None)), 1).cost_s < plan.cost_s


def test_a_fork_has_the_same_luck_and_leaves_the_original_alone() -> None:
    engine = SimulatedEngine(row(40.0, 60.0, 60.0), seed=3)
    engine.observe()
    fork = engine.fork()
    fork.place({"task1": 3})
    fork.observe()
    twin = engine.fork()
    assert engine.observe() == twin.observe()
    assert engine.last is not None
    assert engine.last.snapshot.tasks["task1"].parallelism == 1
    assert fork.last is not None
    assert fork.last.snapshot.tasks["task1"].parallelism == 3


def test_plans_are_kept_by_flow_and_seed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    flow = row(40.0)
    plan = plan_for(flow, 1, tmp_path)

    def refuse(flow: FlowModel, seed: int) -> Plan:
        raise AssertionError(f"searched for {seed} again")

    monkeypatch.setattr(oracle_cache, "find_plan", refuse)
    assert plan_for(flow, 1, tmp_path) == plan
    with pytest.raises(AssertionError, match="for 2 again"):
        plan_for(flow, 2, tmp_path)
    with pytest.raises(AssertionError, match="for 1 again"):
        plan_for(row(41.0), 1, tmp_path)
    (kept,) = tmp_path.iterdir()
    kept.write_text("cut o", encoding="utf-8")
    with pytest.raises(AssertionError, match="for 1 again"):
        plan_for(flow, 1, tmp_path)
