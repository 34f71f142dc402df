"""How a policy did against the oracle, in one bout and over all seeds of a workload.

held              share of the intervals held by the oracle that the policy holds, too
cost              replica-hours over the oracle's
cpu               core-hours over the oracle's
changes           changes of a number of replicas that were ordered
overshoot         the most replicas at any time over the oracle's most, less one
longest_broken_s  the longest time in which no interval was held that the oracle holds
"""

from __future__ import annotations

import itertools
from dataclasses import dataclass
from statistics import fmean
from typing import TYPE_CHECKING

import msgspec

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from penstock.arena.moments import Moment
    from penstock.arena.oracle import Plan


@dataclass(frozen=True, slots=True)
class Trail:
    """A run of a policy, as far as it is judged."""

    moments: list[Moment]
    changes: int


class Score(msgspec.Struct, frozen=True, kw_only=True):
    """One bout. None where the oracle holds nothing, or there is nothing to scale."""

    workload: str
    seed: int
    policy: str
    gentle: bool
    oracle_held: float
    held: float | None
    cost: float | None
    cpu: float | None
    changes: int
    overshoot: float | None
    longest_broken_s: float


class Standing(msgspec.Struct, frozen=True, kw_only=True):
    """A policy over the bouts of a workload: means, and the longest time broken in any."""

    workload: str
    policy: str
    bouts: int
    held: float | None
    cost: float | None
    cpu: float | None
    changes: float
    overshoot: float | None
    longest_broken_s: float


def score(workload: str, seed: int, policy: str, trail: Trail, plan: Plan, *, gentle: bool) -> Score:
    """A run against the plan for the same flow and seed."""
    pairs = list(zip(trail.moments, plan.moments, strict=True))
    both = sum(ours.held and best.held for ours, best in pairs)
    most, enough = _most(trail.moments), _most(plan.moments)
    return Score(
        workload=workload,
        seed=seed,
        policy=policy,
        gentle=gentle,
        oracle_held=plan.held / max(1, len(pairs)),
        held=both / plan.held if plan.held else None,
        cost=_over(_replica_s(trail.moments), plan.cost_s),
        cpu=_over(sum(moment.cores * moment.length_s for moment in trail.moments), plan.core_s),
        changes=trail.changes,
        overshoot=most / enough - 1.0 if enough else None,
        longest_broken_s=_longest_broken_s(pairs),
    )


def standing(scores: Sequence[Score], workload: str | None = None) -> Standing:
    """Of one policy over some bouts, under a name of their own or that of their workload."""
    return Standing(
        workload=workload or scores[0].workload,
        policy=scores[0].policy,
        bouts=len(scores),
        held=_mean(one.held for one in scores),
        cost=_mean(one.cost for one in scores),
        cpu=_mean(one.cpu for one in scores),
        changes=fmean(one.changes for one in scores),
        overshoot=_mean(one.overshoot for one in scores),
        longest_broken_s=max(one.longest_broken_s for one in scores),
    )


def _mean(values: Iterable[float | None]) -> float | None:
    known = [value for value in values if value is not None]
    return fmean(known) if known else None


def _over(ours: float, best: float) -> float | None:
    return ours / best if best > 0.0 else None


def _replica_s(moments: Sequence[Moment]) -> float:
    return sum(moment.total * moment.length_s for moment in moments)


def _most(moments: Sequence[Moment]) -> int:
    return max((moment.total for moment in moments), default=0)


def _longest_broken_s(pairs: Sequence[tuple[Moment, Moment]]) -> float:
    """Intervals that the oracle does not hold neither end a time that is broken nor lengthen it."""
    judged = [(ours.held, ours.length_s) for ours, best in pairs if best.held]
    return max(
        (
            sum(length for _, length in run)
            for held, run in itertools.groupby(judged, lambda one: one[0])
            if not held
        ),
        default=0.0,
    )
