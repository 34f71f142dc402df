"""Who enters the arena: the policies of Penstock, with the settings of their papers, and those of users.

A policy of Penstock may enter several times, with settings: `penstock share=0.9`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, get_type_hints

from penstock.bench.experiments import SETTINGS
from penstock.imported import imported
from penstock.policy.penstock.parameters import PenstockParameters, Switch
from penstock.policy.registry import create_from_settings, policy_names

if TYPE_CHECKING:
    from penstock.policy.port import Policy


SHARES = (0.9, 0.95, 0.97, 0.99)


class EntrantError(ValueError):
    """Nobody of this name can enter; the message says what is missing."""


def curve() -> list[str]:
    """The policy `penstock` once for each share of intervals that may be asked of it."""
    return [f"penstock share={share:g}" for share in SHARES]


def ablation() -> list[str]:
    """The policy `penstock`, and once without each of its parts."""
    parts = [name for name, type_ in get_type_hints(PenstockParameters).items() if type_ == Switch]
    return ["penstock", *(f"penstock {part}=off" for part in parts)]


def known_entrants() -> list[str]:
    """All that enter if nobody is named."""
    return policy_names()


def create_entrant(name: str) -> Policy[Any]:
    """A policy by its name and settings, or as module:Class, which is called without arguments."""
    if ":" not in name:
        policy_name, *own = name.split()
        settings = [*SETTINGS.get(policy_name, ()), *(f"{policy_name}.{one}" for one in own)]
        return create_from_settings(policy_name, settings)
    module_name, _, class_name = name.partition(":")
    make: Any = imported(module_name, class_name, EntrantError, f"--policy {name}: ")
    try:
        policy: Policy[Any] = make()
    except TypeError as error:
        raise EntrantError(f"--policy {name}: {class_name}() must need no arguments: {error}") from None
    lacking = [part for part in ("name", "initial_memory", "decide") if not hasattr(policy, part)]
    if lacking:
        raise EntrantError(f"--policy {name}: a policy has {', '.join(lacking)}, this has not")
    return policy
