"""How policies are set when they control a flow on Spark: one table, for every flow and every run.

`penstock decide` and the simulator keep the constants of the papers, which leave no room for the way between
tasks nor for noise between intervals. What a user sets wins.

Runs that press a day into minutes (the benches and the evaluation) decide every two seconds, and the times of
policies that think in minutes shrink with the day.
"""

from collections.abc import Mapping
from typing import Final

# What is measured while Java is still compiling is not the load. Replicas that have been enough are enough if
# the load stays for another interval.
_GUARDS: Final = (
    "guards.warm_up_s=6",
    "guards.scale_down_window_s=15",
    "guards.scale_down_shown_window_s=4",
)
_POLICIES: Final[Mapping[str, tuple[str, ...]]] = {
    # Thesis: all of the bound is planned with, transport counts for nothing, three intervals (15 s) of rest.
    # A wait measured while a backlog is worked off says little of the wait that more replicas would bring, so
    # the fit is limited from above; in exchange a third of the replicas' time is room for the next step.
    # Batching and queues have fixed shares there; shorter batches are cheaper than another replica.
    "nephele": (
        "nephele.bound_share=0.85",
        "nephele.transport=measured",
        "nephele.batching_yield=0.25",
        "nephele.inactive_intervals=1",
        "nephele.utilization_max=0.65",
        "nephele.fit_limits=[0, 3]",
        "nephele.experiences=200",
    ),
    # It learns how long its orders take: one that a guard holds back would look as if replicas took so long.
    # It has its own ways to wait, and more replicas than a start needed are taken away by evidence.
    "penstock": (
        "guards.warm_up_s=0",
        "guards.scale_down_window_s=0",
        "guards.scale_down_shown_window_s=0",
        "guards.cool_down_intervals=0",
    ),
}

COMPRESSED_INTERVAL: Final = "2 s"
# Pools stay as they were declared: a boundary costs up to two of these intervals, and the day is soon over.
COMPRESSED_SHRINK_POOLS_AFTER: Final = "1 h"
_COMPRESSED: Final[Mapping[str, tuple[str, ...]]] = {
    # Heron: 60 s and 180 s, in a run of more than half an hour; fifteen times as fast.
    "dhalion": ("dhalion.policy_interval_s=4", "dhalion.settle_s=12"),
}


def live_guards() -> tuple[str, ...]:
    """The settings of the guards on Spark, whichever policy they are around."""
    return _GUARDS


def live_settings(policy: str) -> tuple[str, ...]:
    """The settings of a policy and of its guards on Spark, as `--set` takes them."""
    return (*_GUARDS, *_POLICIES.get(policy, ()))


def compressed_settings(policy: str) -> tuple[str, ...]:
    """What is added to them in a run of minutes."""
    return _COMPRESSED.get(policy, ())
