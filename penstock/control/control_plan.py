"""What a user asks of the controller of a flow, checked before anything is started."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import msgspec

from penstock.control.live_settings import live_settings
from penstock.control.settling import SETTLE_S
from penstock.durations import Duration, format_ms, seconds
from penstock.flow.errors import FlowError
from penstock.policy.guards.compose import GuardedPolicy, guarded
from penstock.policy.guards.parameters import GuardParameters
from penstock.policy.parameters import parse_settings
from penstock.policy.registry import create_policy, parameters_type

_SHORTEST_S = 1.0
# Guards that wait for a change, or judge what it brought: recommendations are never carried out.
_NOTHING_TO_WAIT_FOR: dict[str, Any] = {
    "warm_up_s": 0.0,
    "apply_timeout_s": 0.0,
    "cool_down_intervals": 0,
    "ineffective_gain": None,
    "rollback_tolerance": None,
}


@dataclass(frozen=True)
class ControlPlan:
    """Which policy decides, with which settings (on top of `live_settings`), how often.

    `recording` and `status` are files for everything and for the latest state; beside a recording there is
    always a status too. A pool that was far too large for `shrink_pools_after` shrinks.
    """

    policy: str
    settings: tuple[str, ...] = ()
    interval: Duration = "5 s"
    apply: bool = True
    recording: Path | None = None
    status: Path | None = None
    shrink_pools_after: Duration = "2 min"

    def __post_init__(self) -> None:
        if self.interval_s < _SHORTEST_S:
            raise FlowError(
                f"an adjustment interval of {self.interval_s} s is shorter than {_SHORTEST_S} s;"
                " choose a longer one"
            )
        seconds(self.shrink_pools_after)
        self.create_policy()

    @property
    def interval_s(self) -> float:
        """Time between two decisions."""
        return seconds(self.interval)

    @property
    def shrink_pools_after_s(self) -> float:
        """How long a pool must have been too large."""
        return seconds(self.shrink_pools_after)

    def check_commits(self, commit_s: float) -> None:
        """Refuse an interval that never fits between two commits: a boundary would disturb every one."""
        if self.interval_s > commit_s - SETTLE_S:
            raise FlowError(
                f"with commits {format_ms(commit_s * 1000)} apart and an adjustment interval of"
                f" {format_ms(self.interval_s * 1000)} nothing would ever be decided: every interval is"
                f" disturbed by a commit, or begins less than {SETTLE_S:g} s after one; choose a shorter"
                " interval, or commits further apart"
            )

    def create_policy(self, slots: int | None = None) -> GuardedPolicy[Any]:
        """The policy with its parameters, and all guards around it; `slots` is what there is for replicas."""
        kinds: dict[str, type[msgspec.Struct]] = {
            self.policy: parameters_type(self.policy),
            "guards": GuardParameters,
        }
        groups = parse_settings((*live_settings(self.policy), *self.settings), kinds)
        own = msgspec.convert(groups["guards"], GuardParameters)
        limits = [limit for limit in (own.slot_budget, slots) if limit is not None]
        own = msgspec.structs.replace(own, slot_budget=min(limits, default=None))
        if not self.apply:
            own = msgspec.structs.replace(own, **_NOTHING_TO_WAIT_FOR)
        return guarded(create_policy(self.policy, groups[self.policy]), own)
