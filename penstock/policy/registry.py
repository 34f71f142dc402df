"""Policies by name. A module is imported when its policy is first asked for."""

import difflib
import importlib
from collections.abc import Iterable
from typing import Any, NamedTuple

import msgspec

from penstock.policy.parameters import parse_settings
from penstock.policy.port import Policy


class Entry(NamedTuple):
    """Where a policy lives: a class that takes its parameters, and the struct of these parameters."""

    module: str
    policy: str
    parameters: str


_POLICIES = {
    "static": Entry("penstock.policy.static", "Static", "StaticParameters"),
    "threshold": Entry("penstock.policy.threshold", "Threshold", "ThresholdParameters"),
    "nephele": Entry("penstock.policy.nephele", "Nephele", "NepheleParameters"),
    "ds2": Entry("penstock.policy.ds2", "Ds2", "Ds2Parameters"),
    "mape": Entry("penstock.policy.mape", "Mape", "MapeParameters"),
    "dhalion": Entry("penstock.policy.dhalion", "Dhalion", "DhalionParameters"),
    "penstock": Entry("penstock.policy.penstock.policy", "Penstock", "PenstockParameters"),
}


class UnknownPolicyError(ValueError):
    """No policy has this name."""


def policy_names() -> list[str]:
    """The names `create_policy` accepts."""
    return list(_POLICIES)


def policy_modules() -> dict[str, str]:
    """Where each policy lives, by its name."""
    return {name: entry.module for name, entry in _POLICIES.items()}


def parameters_type(name: str) -> type[msgspec.Struct]:
    """The struct of the parameters of policy `name`."""
    entry = _entry(name)
    kind: type[msgspec.Struct] = getattr(importlib.import_module(entry.module), entry.parameters)
    return kind


def create_policy(name: str, parameters: msgspec.Struct | None = None) -> Policy[Any]:
    """Policy `name` with `parameters`, or with its defaults."""
    entry = _entry(name)
    make = getattr(importlib.import_module(entry.module), entry.policy)
    policy: Policy[Any] = make(parameters_type(name)() if parameters is None else parameters)
    return policy


def create_from_settings(name: str, settings: Iterable[str]) -> Policy[Any]:
    """Policy `name` with settings such as `nephele.utilization_max=0.8`."""
    return create_policy(name, parse_settings(settings, {name: parameters_type(name)})[name])


def _entry(name: str) -> Entry:
    if name in _POLICIES:
        return _POLICIES[name]
    close = difflib.get_close_matches(name, _POLICIES, n=1)
    hint = f"did you mean {close[0]!r}? " if close else ""
    raise UnknownPolicyError(f"policy {name!r} is not known; {hint}there are {', '.join(_POLICIES)}")
