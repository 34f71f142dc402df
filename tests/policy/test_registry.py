"""Policies by name."""

import pytest

from penstock.policy.nephele import Nephele, NepheleParameters
from penstock.policy.parameters import SettingError, describe
from penstock.policy.registry import (
    UnknownPolicyError,
    create_from_settings,
    create_policy,
    parameters_type,
    policy_names,
)


@pytest.mark.parametrize("name", policy_names())
def test_every_policy_is_there_and_every_parameter_described(name: str) -> None:
    policy = create_policy(name)
    assert policy.name == name
    assert isinstance(policy.parameters, parameters_type(name))
    for parameter in describe(name, parameters_type(name)):
        assert parameter.name.startswith(f"{name}.")
        assert parameter.meaning


def test_settings_reach_the_policy() -> None:
    policy = create_from_settings("nephele", ["nephele.utilization_max=0.8", "nephele.fit_limits=[0.8, 1.2]"])
    assert isinstance(policy, Nephele)
    assert policy.parameters == NepheleParameters(utilization_max=0.8, fit_limits=(0.8, 1.2))


def test_limits_in_the_wrong_order() -> None:
    with pytest.raises(SettingError) as caught:
        create_from_settings("nephele", ["nephele.fit_limits=[1.2, 0.8]"])
    assert str(caught.value) == (
        "setting 'nephele': fit_limits: expected two numbers, the smaller first, not [1.2, 0.8]"
    )


def test_an_unknown_policy() -> None:
    with pytest.raises(UnknownPolicyError) as caught:
        create_policy("nefele")
    assert str(caught.value) == (
        "policy 'nefele' is not known; did you mean 'nephele'?"
        " there are static, threshold, nephele, ds2, mape, dhalion, penstock"
    )
