"""What `penstock.run` is asked for is checked before anything starts."""

from pathlib import Path
from typing import Any

import pytest

import penstock as ps
from penstock.control.control_plan import DEFAULT_POLICY, ControlPlan, plan_for, usual_interval_s
from penstock.control.recording import Recorder, RecordingError
from penstock.control.settling import SETTLE_S
from penstock.policy.ds2 import Ds2, Ds2Parameters
from penstock.policy.nephele import Nephele, NepheleParameters
from penstock.policy.parameters import SettingError
from penstock.policy.registry import UnknownPolicyError
from tests.control.headers import header
from tests.control.test_loop import CountingPolicy


def flow(*, constrained: bool = True) -> ps.Flow:
    made = ps.Flow("work")
    numbers = made.source(ps.paced(lambda partition, index, seed: index, 10), name="numbers")
    numbers.map(abs, name="abs", parallelism=ps.elastic(1, 4)).sink(print, name="out")
    if constrained:
        made.constrain("20 ms", ["numbers->abs", "abs", "abs->out"])
    return made


def planned(
    made: ps.Flow | None = None, *, constrained: bool = True, commit_s: float = 600.0, **asked: Any
) -> ControlPlan | None:
    usual = {
        "policy": DEFAULT_POLICY,
        "settings": (),
        "interval": None,
        "recommend": False,
        "recording": None,
        "status": None,
        "shrink_pools_after": "2 min",
    }
    return plan_for((made or flow(constrained=constrained)).graph(), commit_s, **{**usual, **asked})


def plan(**asked: Any) -> ControlPlan:
    made = planned(**asked)
    assert made is not None
    return made


def test_constraints_are_kept_by_penstock_with_the_live_settings_every_five_seconds() -> None:
    made = plan()
    assert (made.name, made.interval_s) == (DEFAULT_POLICY, 5.0) == ("penstock", 5.0)
    assert "guards.cool_down_intervals=0" in made.all_settings
    parameters = plan(policy="nephele").create_policy().parameters
    assert isinstance(parameters, NepheleParameters)
    assert parameters.bound_share == 0.85


def test_a_percentile_is_refused_by_those_who_do_not_keep_it() -> None:
    made = flow(constrained=False)
    made.constrain("20 ms", ["numbers->abs", "abs", "abs->out"], statistic="p95")
    with pytest.raises(ps.FlowError) as refused:
        planned(made, policy="nephele")
    assert str(refused.value) == (
        'constraint "c1" of flow "work" bounds the p95, which policy "nephele" does not keep;'
        ' policy "penstock" does'
    )
    assert planned(made) is not None
    for policy in ("penstock", "static", CountingPolicy()):
        assert planned(made, policy=policy) is not None


def test_without_constraints_or_without_a_policy_nobody_decides() -> None:
    assert planned(policy=None) is None
    assert planned(constrained=False) is None
    assert planned(constrained=False, policy="nephele") is None
    assert planned(constrained=False, commit_s=1.0) is None, "commits are as close as one likes"
    assert plan(constrained=False, policy="ds2").name == "ds2"


@pytest.mark.parametrize(
    "asked",
    [
        {"recording": "run.jsonl"},
        {"settings": "penstock.share=0.9"},
        {"recommend": True},
        {"interval": 1},
    ],
)
def test_what_nobody_would_look_at_is_refused(asked: dict[str, Any]) -> None:
    (name,) = asked
    with pytest.raises(ps.FlowError, match=f'{name} would have no effect: flow "work" has no constraints'):
        planned(constrained=False, **asked)
    with pytest.raises(ps.FlowError, match=f"{name} would have no effect: policy is None"):
        planned(policy=None, **asked)


@pytest.mark.parametrize(
    ("asked", "error", "words"),
    [
        ({"policy": "nephelle"}, UnknownPolicyError, "did you mean 'nephele'"),
        ({"policy": 5}, ps.FlowError, "5 is no policy; give its name, an object that can decide, or None"),
        ({"settings": "penstock.shar=1"}, SettingError, "did you mean 'share'"),
        ({"settings": ["ds2.headroom=1"]}, SettingError, "nothing called 'ds2' is in use"),
        ({"settings": {"penstock.share": 7}}, SettingError, r"penstock\.share.*got 7"),
        ({"settings": {"penstock.share": object()}}, SettingError, "is no value"),
        ({"interval": "0.5 s"}, ps.FlowError, "shorter than 1.0 s"),
        ({"interval": "5 s", "commit_s": 6.0}, ps.FlowError, "nothing would ever be decided"),
        ({"commit_s": 2.0}, ps.FlowError, "commits further apart, or no policy"),
        ({"shrink_pools_after": "soon"}, ValueError, "'soon' is not a duration"),
        ({"recording": "/nowhere/run.jsonl"}, RecordingError, "there is no directory /nowhere"),
    ],
)
def test_what_cannot_be_done_is_refused(asked: dict[str, Any], error: type[Exception], words: str) -> None:
    with pytest.raises(error, match=words):
        planned(**asked)


def test_settings_are_texts_or_a_mapping() -> None:
    for given in (
        "nephele.fit_limits=[0.5, 2]",
        ["nephele.fit_limits=[0.5, 2]"],
        {"nephele.fit_limits": [0.5, 2]},
    ):
        parameters = plan(policy="nephele", settings=given).create_policy().parameters
        assert isinstance(parameters, NepheleParameters)
        assert parameters.fit_limits == (0.5, 2)


def test_a_policy_object_keeps_its_parameters_and_its_settings_tell_all_of_them() -> None:
    given = Nephele(NepheleParameters(bound_share=0.5, fit_limits=(0.5, 2)))
    made = plan(policy=given)
    assert made.create_policy().parameters == given.parameters
    assert "nephele.bound_share=0.5" in made.all_settings
    assert "guards.warm_up_s=6" in made.all_settings
    again = plan(policy=Ds2(Ds2Parameters()), settings={"ds2.headroom": 0.5}).create_policy().parameters
    assert again == Ds2Parameters(headroom=0.5)


def test_a_policy_of_the_users_own_is_guarded_too() -> None:
    made = plan(policy=CountingPolicy(), settings=["guards.warm_up_s=1"])
    assert made.name == made.create_policy().name == "counting"
    with pytest.raises(SettingError, match="nothing called 'counting' is in use"):
        plan(policy=CountingPolicy(), settings=["counting.speed=1"])


@pytest.mark.parametrize(
    ("commit_s", "interval_s"), [(600.0, 5.0), (12.0, 5.0), (6.0, 2.0), (4.0, 1.0), (3.0, 1.0)]
)
def test_intervals_are_shorter_where_commits_are_close(commit_s: float, interval_s: float) -> None:
    assert plan(commit_s=commit_s).interval_s == usual_interval_s(commit_s) == interval_s
    assert commit_s < 4 or 2 * interval_s <= commit_s - SETTLE_S, "one always fits between two commits"


def test_paths_are_texts_too_and_a_file_of_something_else_is_refused(tmp_path: Path) -> None:
    for path in (tmp_path / "run.jsonl", str(tmp_path / "run.jsonl")):
        assert plan(recording=path).recording == tmp_path / "run.jsonl"
    assert not (tmp_path / "run.jsonl").exists(), "nothing has started"
    Recorder(tmp_path / "run.jsonl", header(flow="other")).close()
    with pytest.raises(RecordingError, match="holds runs of flow 'other', not of 'work'"):
        plan(recording=str(tmp_path / "run.jsonl"))
