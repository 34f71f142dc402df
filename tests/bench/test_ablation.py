"""Which settings are taken back, and to what."""

import pytest

from penstock.bench.ablation import LIVE, MATTER_MOST, POLICY, THESIS, changed, taken_back, variants
from penstock.control.control_plan import ControlPlan
from penstock.control.live_settings import live_settings
from penstock.policy.nephele import NepheleParameters
from penstock.policy.parameters import parse_settings


def parameters(*more: str) -> NepheleParameters:
    settings = [one for one in live_settings(POLICY) if one.startswith(POLICY)]
    found = parse_settings([*settings, *more], {POLICY: NepheleParameters})[POLICY]
    assert isinstance(found, NepheleParameters)
    return found


def test_all_taken_back_is_the_thesis_and_none_is_as_flows_run() -> None:
    every = variants(list(changed()))
    assert parameters(*every[THESIS]) == NepheleParameters()
    assert parameters(*every[LIVE]) == parameters() != NepheleParameters()


@pytest.mark.parametrize("name", list(changed()))
def test_one_taken_back_leaves_the_others(name: str) -> None:
    found, live, thesis = parameters(taken_back(name)), parameters(), NepheleParameters()
    assert getattr(live, name) != getattr(thesis, name), "it is a change"
    for field in changed():
        assert getattr(found, field) == getattr(thesis if field == name else live, field)


def test_what_runs_on_spark_can_be_set_there() -> None:
    assert set(MATTER_MOST) <= set(changed())
    for settings in variants(MATTER_MOST).values():
        ControlPlan(POLICY, settings)
