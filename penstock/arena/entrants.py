"""Who enters the arena: the policies of Penstock, with the settings of their papers, and those of users."""

from __future__ import annotations

import importlib
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

from penstock.bench.experiments import SETTINGS
from penstock.policy.registry import create_from_settings, policy_names

if TYPE_CHECKING:
    from penstock.policy.port import Policy


class EntrantError(ValueError):
    """Nobody of this name can enter; the message says what is missing."""


def known_entrants() -> list[str]:
    """All that enter if nobody is named."""
    return policy_names()


def create_entrant(name: str) -> Policy[Any]:
    """A policy by its name, or as module:Class, which is called without arguments."""
    if ":" not in name:
        return create_from_settings(name, SETTINGS.get(name, ()))
    module_name, _, class_name = name.partition(":")
    here = str(Path.cwd())
    if here not in sys.path:
        sys.path.insert(0, here)
    try:
        module = importlib.import_module(module_name)
    except ModuleNotFoundError as error:
        if error.name is not None and (module_name == error.name or module_name.startswith(f"{error.name}.")):
            raise EntrantError(
                f"--policy {name}: no module {module_name!r} to be found from {here}"
            ) from None
        raise
    make = getattr(module, class_name, None)
    if make is None:
        raise EntrantError(f"--policy {name}: module {module_name!r} has no {class_name!r}")
    try:
        policy: Policy[Any] = make()
    except TypeError as error:
        raise EntrantError(f"--policy {name}: {class_name}() must need no arguments: {error}") from None
    lacking = [part for part in ("name", "initial_memory", "decide") if not hasattr(policy, part)]
    if lacking:
        raise EntrantError(f"--policy {name}: a policy has {', '.join(lacking)}, this has not")
    return policy
