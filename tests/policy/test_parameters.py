"""Settings: parsed, described, and refused in the user's words."""

from typing import Annotated, Literal

import msgspec
import pytest
from msgspec import Meta

from penstock.policy.parameters import (
    Parameter,
    SettingError,
    as_settings,
    describe,
    parse_settings,
    settings_of,
)
from penstock.policy.registry import parameters_type, policy_names


class Example(msgspec.Struct, frozen=True, kw_only=True):
    weight: Annotated[float, Meta(ge=0, le=1, description="how much", extra={"unit": "share"})] = 0.8
    limits: tuple[float, float] | None = None
    mode: Literal["fast", "slow"] = "fast"


GROUPS = {"example": Example}


def test_values_are_json_and_the_rest_is_text() -> None:
    parsed = parse_settings(["example.weight=0.5", "example.limits=[0.8, 1.2]", "example.mode=slow"], GROUPS)
    assert parsed == {"example": Example(weight=0.5, limits=(0.8, 1.2), mode="slow")}
    assert parse_settings(["example.limits=null"], GROUPS) == {"example": Example()}


def test_the_last_setting_wins_and_none_gives_the_defaults() -> None:
    assert parse_settings([], GROUPS) == {"example": Example()}
    assert parse_settings(["example.weight=0", "example.weight=1"], GROUPS) == {
        "example": Example(weight=1.0)
    }


def test_description() -> None:
    assert describe("example", Example) == [
        Parameter("example.weight", 0.8, "share", "how much"),
        Parameter("example.limits", None, "", ""),
        Parameter("example.mode", "fast", "", ""),
    ]


@pytest.mark.parametrize(
    ("setting", "message"),
    [
        ("weight", "setting 'weight': expected <policy>.<name>=<value>"),
        ("weight=1", "setting 'weight=1': expected <policy>.<name>=<value>"),
        (
            "ds2.weight=1",
            "setting 'ds2.weight': nothing called 'ds2' is in use; there are settings of example",
        ),
        (
            "example.wieght=1",
            "setting 'example.wieght': example has no parameter 'wieght'; did you mean 'weight'?",
        ),
        (
            "example.zzz=1",
            "setting 'example.zzz': example has no parameter 'zzz'; it has weight, limits, mode",
        ),
        ("example.weight=x", "setting 'example.weight': expected a number, got \"x\""),
        ("example.mode=quick", "setting 'example.mode': expected 'fast' or 'slow', got \"quick\""),
        ("example.weight=2", "setting 'example.weight': expected a number <= 1.0, got 2"),
        ("example.weight=NaN", "setting 'example.weight': NaN is not a finite number"),
        ("example.limits=[1]", "setting 'example.limits': expected a list of length 2, got [1]"),
        ("example.limits=[1, true]", "setting 'example.limits[1]': expected a number, got [1, true]"),
    ],
)
def test_refusals(setting: str, message: str) -> None:
    with pytest.raises(SettingError) as caught:
        parse_settings([setting], GROUPS)
    assert str(caught.value) == message


@pytest.mark.parametrize("name", policy_names())
def test_parameters_as_settings_are_the_same_parameters(name: str) -> None:
    kind = parameters_type(name)
    assert parse_settings(settings_of(name, kind()), {name: kind})[name] == kind()


def test_settings_in_any_form() -> None:
    assert as_settings("a.b=1") == as_settings(["a.b=1"]) == as_settings({"a.b": 1}) == ("a.b=1",)
    assert as_settings({"a.b": None, "a.c": "last", "a.d": [0, 3]}) == (
        "a.b=null",
        'a.c="last"',
        "a.d=[0,3]",
    )
    with pytest.raises(SettingError, match=r"setting 'a\.b': .* is no value"):
        as_settings({"a.b": object()})
