"""The load a flow is offered and how much of it is dealt with: what tells a good change from a bad one.

The share delivered is the smallest, over all sources and tasks, of observed rate / target rate, at most
1. The target of a source is its rate, that of a task the input it would have if everything before it kept
up (DS2, equation 8).
"""

import math
from collections.abc import Mapping

from penstock.policy.ds2_rates import observed_output_per_s, observed_processing_per_s
from penstock.policy.ds2_traversal import traverse
from penstock.policy.measured import finite
from penstock.stats.snapshot import Snapshot


def source_rates(snapshot: Snapshot) -> dict[str, float]:
    """Items per second that the known sources are to emit."""
    rates = {name: finite(task.rate_total) for name, task in snapshot.tasks.items() if task.kind == "source"}
    return {name: rate for name, rate in rates.items() if rate is not None}


def same_load(before: Mapping[str, float], now: Mapping[str, float], tolerance: float) -> bool:
    """Whether no source's rate moved by more than `tolerance` (a share of its rate before)."""
    return before.keys() == now.keys() and all(
        abs(now[name] - rate) <= tolerance * rate for name, rate in before.items()
    )


def source_shortfall(snapshot: Snapshot) -> float | None:
    """The largest target rate / observed rate of a source, at least 1; None if no output was measured."""
    ratios = []
    for name, target_per_s in source_rates(snapshot).items():
        observed = observed_output_per_s(snapshot.tasks[name], snapshot.interval_s)
        if observed is not None:
            ratios.append(_ratio(target_per_s, observed))
    return max(ratios, default=None)


def _ratio(target_per_s: float, observed_per_s: float) -> float:
    if target_per_s <= observed_per_s:
        return 1.0
    return target_per_s / observed_per_s if observed_per_s else math.inf


def delivered_share(snapshot: Snapshot) -> float | None:
    """The share of the load that gets through, or None if nothing tells."""
    shares = []
    shortfall = source_shortfall(snapshot)
    if shortfall is not None:
        shares.append(1 / shortfall)
    for name, need in traverse(snapshot).items():
        task = snapshot.tasks[name]
        observed = observed_processing_per_s(task, snapshot.interval_s)
        if task.kind != "source" and need.target_per_s and observed is not None:
            shares.append(observed / need.target_per_s)
    return min(1.0, min(shares)) if shares else None
