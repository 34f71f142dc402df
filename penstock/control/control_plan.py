"""What a user asks of the controller of a flow, checked before anything is started."""

import os
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from penstock.control.live_policy import is_built_in, live_policy, policy_name
from penstock.control.live_settings import live_guards, live_settings
from penstock.control.recording import check_recording
from penstock.control.settling import SETTLE_S
from penstock.durations import Duration, format_ms, seconds
from penstock.flow.errors import FlowError
from penstock.flow.graph import Graph
from penstock.policy.guards.compose import GuardedPolicy
from penstock.policy.parameters import as_settings, settings_of
from penstock.policy.port import Policy

DEFAULT_POLICY: Final = "penstock"
KEEP_BOUNDS: Final = ("penstock", "nephele")
"""Those that do nothing but keep constraints, and shorten lifetimes for that."""
_KNOW_PERCENTILES: Final = ("penstock", "static")
SHRINK_POOLS_AFTER: Final = "2 min"
Settings = str | Iterable[str] | Mapping[str, object]
"""`<policy>.<name>=<value>`, one or several, or a mapping of names to values."""
_INTERVAL_S = 5.0
_SHORTEST_S = 1.0


@dataclass(frozen=True)
class ControlPlan:
    """Which policy decides, with which settings (on top of `live_settings`), how often.

    `recommend`: it decides and changes nothing. `recording` and `status` are files for everything and for the
    latest state; beside a recording there is always a status too. A pool that was far too large for
    `shrink_pools_after` shrinks.
    """

    policy: str | Policy[Any]
    settings: tuple[str, ...] = ()
    interval: Duration = _INTERVAL_S
    recommend: bool = False
    recording: Path | None = None
    status: Path | None = None
    shrink_pools_after: Duration = SHRINK_POOLS_AFTER

    def __post_init__(self) -> None:
        if self.interval_s < _SHORTEST_S:
            raise FlowError(
                f"an adjustment interval of {self.interval_s} s is shorter than {_SHORTEST_S} s;"
                " choose a longer one"
            )
        seconds(self.shrink_pools_after)
        self.create_policy()

    @property
    def name(self) -> str:
        """Of the policy."""
        return policy_name(self.policy)

    @property
    def all_settings(self) -> list[str]:
        """Those of every live flow, then the user's, which win.

        A policy that comes as an object has the parameters it was made with.
        """
        if isinstance(self.policy, str):
            return [*live_settings(self.policy), *self.settings]
        own = settings_of(self.name, self.policy.parameters) if is_built_in(self.policy) else []
        return [*live_guards(), *own, *self.settings]

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
                f" interval ({_SHORTEST_S:g} s at the least), commits further apart, or no policy"
            )

    def create_policy(self, slots: int | None = None) -> GuardedPolicy[Any]:
        """The policy with its parameters, and all guards around it; `slots` is what there is for replicas."""
        return live_policy(self.policy, self.all_settings, slots, recommend=self.recommend)


def plan_for(
    graph: Graph,
    commit_s: float,
    *,
    policy: str | Policy[Any] | None,
    settings: Settings,
    interval: Duration | None,
    recommend: bool,
    recording: str | os.PathLike[str] | None,
    status: Path | None,
    shrink_pools_after: Duration,
) -> ControlPlan | None:
    """What the arguments of `penstock.run` ask for; None if nobody is to decide about the flow.

    That is so without a policy, and without constraints, unless a policy is named that needs none.
    """
    nothing_to_keep = policy in KEEP_BOUNDS and not graph.constraints
    if policy is None or nothing_to_keep:
        why = f'flow "{graph.name}" has no constraints' if nothing_to_keep else "policy is None"
        _refuse_unread(why, recording=recording, settings=settings, recommend=recommend, interval=interval)
        return None
    if not isinstance(policy, str) and not hasattr(policy, "decide"):
        raise FlowError(f"{policy!r} is no policy; give its name, an object that can decide, or None")
    _refuse_percentiles(graph, policy)
    plan = ControlPlan(
        policy,
        settings=as_settings(settings),
        interval=usual_interval_s(commit_s) if interval is None else interval,
        recommend=recommend,
        recording=None if recording is None else Path(recording),
        status=status,
        shrink_pools_after=shrink_pools_after,
    )
    plan.check_commits(commit_s)
    if plan.recording is not None:
        check_recording(plan.recording, graph.name)
    return plan


def usual_interval_s(commit_s: float) -> float:
    """5 s; less where commits are so close that no whole interval would fit between two of them.

    Intervals do not begin at commits. One of half the undisturbed time always lies within it.
    """
    return min(_INTERVAL_S, max(_SHORTEST_S, (commit_s - SETTLE_S) / 2))


def _refuse_percentiles(graph: Graph, policy: str | Policy[Any]) -> None:
    """The policies of the papers keep means, or no latency at all."""
    name = policy_name(policy)
    if not is_built_in(policy) or name in _KNOW_PERCENTILES:
        return
    for one in graph.constraints:
        if one.statistic != "mean":
            raise FlowError(
                f'constraint "{one.name}" of flow "{graph.name}" bounds the {one.statistic}, which policy'
                f' "{name}" does not keep; policy "penstock" does'
            )


def _refuse_unread(why: str, **given: object) -> None:
    """Nobody would look at these arguments: say so instead."""
    unread = [name for name, value in given.items() if value]
    if unread:
        raise FlowError(
            f"{', '.join(unread)} would have no effect: {why}, so nothing is decided; name a policy, for"
            ' example "static", which measures, records and changes nothing'
        )
