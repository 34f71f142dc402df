"""Plans of control are checked before anything starts, and become guarded policies."""

import pytest

import penstock as ps
from penstock.control.control_plan import ControlPlan
from penstock.control.live_settings import COMPRESSED_INTERVAL, compressed_settings
from penstock.control.loop import Controller
from penstock.policy.nephele import NepheleParameters
from penstock.policy.registry import policy_names
from penstock.testing.engine import FakeEngine
from tests.control.steady_task import loaded


def replicas(plan: ControlPlan, *, slots: int | None = None) -> list[int]:
    """What a plan decides for a load that it can never change."""
    engine = FakeEngine(lambda number, _: loaded(900.0, 1, jitter=number) if number < 8 else None)
    cycles = Controller(engine, plan.create_policy(slots), engine.clock).cycles()
    return [cycle.decision.parallelism["work"] for cycle in cycles]


def test_bad_plans_are_refused() -> None:
    with pytest.raises(ps.FlowError, match=r"interval of 0.2 s is shorter than 1.0 s"):
        ControlPlan("ds2", interval="0.2 s")
    with pytest.raises(ValueError, match="nephele"):
        ControlPlan("nephelle")
    with pytest.raises(ValueError, match=r"ds2\.nothing"):
        ControlPlan("ds2", settings=("ds2.nothing=1",))
    with pytest.raises(ValueError, match="'soon' is not a duration"):
        ControlPlan("ds2", shrink_pools_after="soon")


def test_an_interval_that_never_fits_between_two_commits_is_refused() -> None:
    plan = ControlPlan("ds2", interval="5 s")
    plan.check_commits(7.0)
    with pytest.raises(
        ps.FlowError, match=r"commits 6.9 s apart and an adjustment interval of 5 s nothing would ever"
    ):
        plan.check_commits(6.9)


def test_recommendations_do_not_wait_for_changes_that_never_come() -> None:
    assert replicas(ControlPlan("ds2", recommend=True)) == [4] * 8
    assert replicas(ControlPlan("ds2")) != [4] * 8


def test_slots_of_spark_and_of_the_user_both_limit() -> None:
    assert max(replicas(ControlPlan("ds2", recommend=True), slots=5)) == 3
    own = ControlPlan("ds2", recommend=True, settings=("guards.slot_budget=4",))
    assert max(replicas(own, slots=5)) == max(replicas(own)) == 2


def nephele(*settings: str) -> NepheleParameters:
    parameters = ControlPlan("nephele", settings=settings).create_policy().parameters
    assert isinstance(parameters, NepheleParameters)
    return parameters


def test_live_settings_are_the_defaults_and_those_of_the_user_win() -> None:
    assert (nephele().bound_share, nephele().transport) == (0.85, "measured")
    assert nephele("nephele.bound_share=0.7").bound_share == 0.7
    assert nephele("nephele.bound_share=0.7").inactive_intervals == 1


def test_runs_of_minutes_have_settings_that_every_policy_knows() -> None:
    for policy in policy_names():
        plan = ControlPlan(policy, settings=compressed_settings(policy), interval=COMPRESSED_INTERVAL)
        assert plan.interval_s == 2.0


def test_nothing_is_decided_while_a_flow_warms_up() -> None:
    plan = ControlPlan("ds2")
    assert replicas(plan)[0] == 1
    assert replicas(ControlPlan("ds2", settings=("guards.warm_up_s=0",)))[0] > 1
