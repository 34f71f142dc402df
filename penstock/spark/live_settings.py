"""How policies are set when they control a flow on Spark: one table, for every flow and every run.

`penstock decide` and the simulator keep the constants of the papers, which were chosen for clusters of a
hundred machines and for runs of hours. Here an interval is two seconds and a load may double within ten, so
times are shorter; and there is transport between tasks and noise between intervals, for which a plan must
leave room. What a user sets wins.
"""

from collections.abc import Mapping
from typing import Final

INTERVAL: Final = "2 s"

# What is measured while Java is still compiling is not the load.
_GUARDS: Final = ("guards.warm_up_s=6", "guards.scale_down_window_s=15")
_POLICIES: Final[Mapping[str, tuple[str, ...]]] = {
    # Thesis: all of the bound is planned with, transport counts for nothing, three intervals (15 s) of rest.
    "nephele": ("nephele.bound_share=0.85", "nephele.transport=measured", "nephele.inactive_intervals=1"),
    # Heron: 60 s and 180 s, for runs of more than half an hour; here that is fifteen times as fast.
    "dhalion": ("dhalion.policy_interval_s=4", "dhalion.settle_s=12"),
}


def live_settings(policy: str) -> tuple[str, ...]:
    """The settings of a policy and of its guards, as `--set` takes them."""
    return (*_GUARDS, *_POLICIES.get(policy, ()))
