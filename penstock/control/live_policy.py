"""The policy that controls a flow: by its name or as an object, with its settings, in all guards."""

from collections.abc import Iterable, Sequence
from typing import Any

import msgspec

from penstock.control.live_settings import live_settings
from penstock.control.recording_header import VERSION, RecordingHeader
from penstock.policy.guards.compose import GuardedPolicy, guarded
from penstock.policy.guards.parameters import GuardParameters
from penstock.policy.parameters import SettingError, parse_settings
from penstock.policy.port import Policy
from penstock.policy.registry import create_from_settings, create_policy, parameters_type, policy_names

# Guards that wait for a change, or judge what it brought: recommendations are never carried out.
_NOTHING_TO_WAIT_FOR: dict[str, Any] = {
    "warm_up_s": 0.0,
    "apply_timeout_s": 0.0,
    "cool_down_intervals": 0,
    "ineffective_gain": None,
    "rollback_tolerance": None,
}


def policy_name(policy: str | Policy[Any]) -> str:
    """What users call it."""
    return policy if isinstance(policy, str) else policy.name


def is_built_in(policy: str | Policy[Any]) -> bool:
    """Whether its name and its parameters tell all about it: it is one of Penstock's."""
    if isinstance(policy, str):
        return True
    return policy.name in policy_names() and type(policy) is type(create_policy(policy.name))


def as_run(header: RecordingHeader | None, policy: str | None, settings: Sequence[str]) -> Policy[Any]:
    """The policy of a recorded run, exactly as it decided then.

    Another one if `policy` names it: as it would decide on Spark, with the slots of that run, and `settings`.
    """
    if policy is not None:
        slots, recommend = (None, False) if header is None else (header.slots, header.recommend)
        return live_policy(policy, [*live_settings(policy), *settings], slots, recommend=recommend)
    if header is None:
        raise SettingError("nothing says which policy ran: it is no recording; name one")
    return policy_of(header)


def policy_of(header: RecordingHeader) -> Policy[Any]:
    """The policy that decides as the header of a recording says."""
    if header.version < VERSION:
        raise SettingError(
            f"it was recorded by an older Penstock (version {header.version}, now {VERSION}) and does not"
            " say how its policy ran; name one"
        )
    if not header.built_in:
        raise SettingError(
            f"policy {header.policy!r} is none of Penstock's, and a recording does not hold its code; name"
            f" one of {', '.join(policy_names())}"
        )
    if not header.guards:
        return create_from_settings(header.policy, header.settings)
    return live_policy(header.policy, header.settings, header.slots, recommend=header.recommend)


def live_policy(
    policy: str | Policy[Any], settings: Iterable[str], slots: int | None = None, *, recommend: bool = False
) -> GuardedPolicy[Any]:
    """The policy with exactly these settings, in its guards; `slots` is what there is for replicas.

    A policy of the user's own has its parameters already: settings are for the guards.
    """
    kinds: dict[str, type[msgspec.Struct]] = {"guards": GuardParameters}
    name, built_in = policy_name(policy), is_built_in(policy)
    if built_in:
        kinds = {name: parameters_type(name), **kinds}
    groups = parse_settings(settings, kinds)
    own = msgspec.convert(groups["guards"], GuardParameters)
    limits = [limit for limit in (own.slot_budget, slots) if limit is not None]
    own = msgspec.structs.replace(own, slot_budget=min(limits, default=None))
    if recommend:
        own = msgspec.structs.replace(own, **_NOTHING_TO_WAIT_FOR)
    if isinstance(policy, str) or built_in:
        return guarded(create_policy(name, groups[name]), own)
    return guarded(policy, own)
