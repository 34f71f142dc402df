"""Real policies with their guards on a fake engine and its clock: bounded, sane, never blind; no sleeping."""

from collections.abc import Mapping

import pytest

from penstock.control.loop import Controller, Cycle
from penstock.control.notices import Notices
from penstock.policy.guards.compose import guarded
from penstock.policy.guards.parameters import GuardParameters
from penstock.policy.registry import create_policy
from penstock.stats.snapshot import Snapshot
from penstock.testing.engine import FakeEngine
from tests.control.steady_task import following, loaded, with_a_hole

POLICIES = ["nephele", "ds2", "mape", "threshold", "dhalion"]


def run(engine: FakeEngine, policy: str, guards: GuardParameters | None = None) -> list[Cycle]:
    return list(Controller(engine, guarded(create_policy(policy), guards), engine.clock).cycles())


def replicas(cycles: list[Cycle]) -> list[int]:
    return [cycle.decision.parallelism["work"] for cycle in cycles]


def actions(cycles: list[Cycle]) -> int:
    return sum(cycle.effect is not None for cycle in cycles)


@pytest.mark.parametrize("policy", POLICIES)
@pytest.mark.parametrize("intervals", [1, 3])
def test_flapping_load_causes_few_actions(policy: str, intervals: int) -> None:
    rates = ([200.0] * intervals + [800.0] * intervals) * (60 // intervals)
    cycles = run(FakeEngine(following(rates), {"work": 1}), policy)
    assert cycles[-1].at_s == 600.0
    assert actions(cycles) <= 6


@pytest.mark.parametrize("policy", ["nephele", "ds2", "threshold"])
def test_load_that_rises_is_followed_and_load_that_falls_too(policy: str) -> None:
    cycles = run(FakeEngine(following([200.0] * 4 + [900.0] * 30 + [100.0] * 60), {"work": 1}), policy)
    assert replicas(cycles)[33] >= 4
    assert replicas(cycles)[-1] < replicas(cycles)[33]


@pytest.mark.parametrize("policy", POLICIES)
def test_maximum_parallelism_is_reached_and_never_passed(policy: str) -> None:
    cycles = run(FakeEngine(following([9000.0] * 120, most=5), {"work": 1}), policy)
    assert max(replicas(cycles)) == replicas(cycles)[-1] == 5
    assert actions(cycles) <= 4


@pytest.mark.parametrize("policy", POLICIES)
def test_the_slot_budget_is_used_up_and_never_passed(policy: str) -> None:
    cycles = run(FakeEngine(following([9000.0] * 120), {"work": 1}), policy, GuardParameters(slot_budget=6))
    assert max(replicas(cycles)) == replicas(cycles)[-1] == 4, "source and sink take one slot each"
    assert any(refusal.guard == "slot_budget" for refusal in cycles[-1].decision.refused)


@pytest.mark.parametrize("policy", ["nephele", "ds2"])
def test_a_constraint_that_cannot_be_kept_is_told_once_and_the_configuration_stays_sane(policy: str) -> None:
    cycles = run(FakeEngine(following([9000.0] * 40, bound_ms=5.0), {"work": 1}), policy)
    notices = Notices()
    told = [message for cycle in cycles for message in notices.of(cycle)]
    assert len(told) == 1
    assert "cannot be kept" in told[0]
    assert replicas(cycles)[-1] == 16
    lifetimes = [ms for cycle in cycles for ms in cycle.decision.batch_lifetime_ms.values()]
    assert all(0.0 <= ms <= 5.0 for ms in lifetimes)


@pytest.mark.parametrize("policy", POLICIES)
def test_snapshots_with_holes_change_nothing_and_are_told_once(policy: str) -> None:
    def show(number: int, replicas: Mapping[str, int]) -> Snapshot | None:
        if number == 30:
            return None
        snapshot = loaded(2500.0, replicas["work"], bound_ms=200.0, jitter=number)
        return with_a_hole(snapshot) if number < 20 else snapshot

    cycles = run(FakeEngine(show, {"work": 2}), policy)
    assert set(replicas(cycles[:20])) == {2}
    assert all(not cycle.decision.batch_lifetime_ms for cycle in cycles[:20])
    assert replicas(cycles)[-1] > 2
    notices = Notices()
    told = [message for cycle in cycles for message in notices.of(cycle)]
    assert told == [
        "nothing is decided, the configuration stays: only 1 of 2 replicas of 'work' reported",
        "measurements are complete again",
    ]


def test_a_recorded_run_decides_the_same_when_it_is_repeated() -> None:
    rates = [200.0, 900.0, 900.0, 400.0] * 10
    first = run(FakeEngine(following(rates), {"work": 1}), "nephele")
    again = run(FakeEngine(following(rates), {"work": 1}), "nephele")
    assert [cycle.decision for cycle in first] == [cycle.decision for cycle in again]
