"""Nephele: adaptive output batching, elastic scaling and dynamic task chaining, as in the thesis.

The three read the same snapshot and do not wait for each other. Scaling rests for some intervals after
replicas were added (section 4.6.4): new ones need time to work off what queued up before they came.
"""

from collections.abc import Collection, Set
from typing import Annotated, Literal, NamedTuple

import msgspec
from msgspec import Meta
from msgspec.structs import replace

from penstock.policy.batching import Batching, adjust_lifetimes
from penstock.policy.batching_buffers import BufferRules, size_buffers
from penstock.policy.catch_up import RULE, Backlog, backlogs, draining_replicas
from penstock.policy.chaining import Chaining, chain_2012, chain_tasks
from penstock.policy.decision import Decision, Reason
from penstock.policy.experience import Experience, Experiences, experience, is_hiccup, remembered
from penstock.policy.planned_bound import Transport, plan_bounds
from penstock.policy.scaling import Scaling, ScalingRules, keep_forward_equal, scale_reactively
from penstock.policy.scaling_model import FitLimits
from penstock.policy.source_scaling import scale_sources
from penstock.stats.snapshot import Snapshot


class NepheleParameters(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The constants of the thesis; `None` or "off" switches a part off."""

    batching_weight: Annotated[
        float,
        Meta(
            ge=0,
            le=1,
            description="w_ob: share of the time the tasks leave that batching may use; queues get the rest",
            extra={"unit": "share"},
        ),
    ] = 0.8
    batching_yield: Annotated[
        float,
        Meta(
            ge=0,
            le=1,
            description="share of its time that batching leaves to queues that need it; the thesis: none",
            extra={"unit": "share"},
        ),
    ] = 0.0
    utilization_max: Annotated[
        float,
        Meta(
            gt=0,
            lt=1,
            description="rho_max: most load of the average replica (scaling) or of a chain (chaining)",
            extra={"unit": "share"},
        ),
    ] = 0.9
    bottleneck_utilization: Annotated[
        float,
        Meta(gt=0, description="load from which a task is a bottleneck", extra={"unit": "share"}),
    ] = 0.99
    fit_limits: Annotated[
        tuple[float, float] | None,
        Meta(
            description="bounds on e, measured over predicted queue wait; the public code has [0.8, 1.2]",
            extra={"unit": "ratio"},
        ),
    ] = None
    queue_limit: Annotated[
        Literal["thesis", "public_code"],
        Meta(description="queue wait allowed: the share batching leaves, or 0.9 of it over the streams"),
    ] = "thesis"
    inactive_intervals: Annotated[
        int,
        Meta(
            ge=0,
            description="intervals without scaling after replicas were added (thesis 3, ICDCS 2015 2)",
            extra={"unit": "intervals"},
        ),
    ] = 3
    experiences: Annotated[
        int,
        Meta(
            ge=0,
            description="how many waits, by replicas and rate, are remembered to take replicas away earlier",
        ),
    ] = 0
    bound_share: Annotated[
        float,
        Meta(
            gt=0,
            le=1,
            description="share of every bound that is planned with; the rest is room for error",
            extra={"unit": "share"},
        ),
    ] = 1.0
    transport: Annotated[
        Transport,
        Meta(description="measured: the time between tasks is taken off the bound; the thesis ignores it"),
    ] = "ignored"
    min_change: Annotated[
        float,
        Meta(
            ge=0,
            lt=1,
            description="smallest change of a task's replicas that is made; the public code has 0.04",
            extra={"unit": "share"},
        ),
    ] = 0.0
    rebalance_step: Annotated[
        Literal["variable", "unit"],
        Meta(description="variable: ICDCS 2015; unit: thesis, algorithm 7; the result is the same"),
    ] = "variable"
    batching: Annotated[
        Literal["lifetime", "buffer_2012", "off"],
        Meta(description="lifetime: thesis, algorithm 3; buffer_2012: HPDC 2012, r = 0.98 and s = 1.1"),
    ] = "lifetime"
    chaining: Annotated[
        Literal["thesis", "rule_2012", "off"],
        Meta(description="thesis: algorithms 9 and 10; rule_2012: HPDC 2012"),
    ] = "thesis"
    scaling: Annotated[
        Literal["reactive", "off"], Meta(description="reactive: ScaleReactively, algorithm 8")
    ] = "reactive"
    buffer_shrink: Annotated[
        float,
        Meta(gt=0, lt=1, description="r of buffer_2012, per ms of batching delay", extra={"unit": "ratio"}),
    ] = 0.98
    buffer_grow: Annotated[float, Meta(gt=1, description="s of buffer_2012", extra={"unit": "ratio"})] = 1.1

    def __post_init__(self) -> None:
        if self.fit_limits is not None and not 0 <= self.fit_limits[0] <= self.fit_limits[1]:
            lowest, highest = self.fit_limits
            raise ValueError(
                f"fit_limits: expected two numbers, the smaller first, not [{lowest:g}, {highest:g}]"
            )


class NepheleMemory(msgspec.Struct, frozen=True):
    """Replicas last seen and last asked for, for how many intervals scaling rests, and what is known.

    `draining` says whether a source had a backlog.
    """

    seen: dict[str, int] = {}
    asked: dict[str, int] = {}
    resting: int = 0
    feasible: bool = True
    known: dict[str, tuple[Experience, ...]] = {}
    draining: bool = False


class _Scaled(NamedTuple):
    replicas: dict[str, int]
    reasons: list[Reason]
    memory: NepheleMemory


class Nephele:
    """The policy of the thesis."""

    name = "nephele"

    def __init__(self, parameters: NepheleParameters | None = None) -> None:
        self.parameters = parameters if parameters is not None else NepheleParameters()

    def initial_memory(self) -> NepheleMemory:
        """Nothing seen, not resting."""
        return NepheleMemory()

    def decide(self, snapshot: Snapshot, memory: NepheleMemory) -> tuple[Decision, NepheleMemory]:
        """Batch lifetimes, replicas and chains for this snapshot."""
        own = self.parameters
        within, planned = plan_bounds(snapshot, own.bound_share, own.transport)
        batching = self._batching(within)
        chaining = self._chaining(snapshot)
        scaled = self._scaling(within, memory)
        decision = Decision(
            policy=self.name,
            parallelism=scaled.replicas,
            batch_lifetime_ms=batching.lifetimes_ms,
            chains=chaining.chains,
            feasible=scaled.memory.feasible,
            reasons=[*_statistics(snapshot), *planned, *batching.reasons, *scaled.reasons, *chaining.reasons],
        )
        return decision, scaled.memory

    def _batching(self, snapshot: Snapshot) -> Batching:
        own = self.parameters
        if own.batching == "lifetime":
            return adjust_lifetimes(snapshot, own.batching_weight, own.batching_yield)
        if own.batching == "buffer_2012":
            return size_buffers(snapshot, BufferRules(shrink=own.buffer_shrink, grow=own.buffer_grow))
        return Batching({}, [])

    def _chaining(self, snapshot: Snapshot) -> Chaining:
        if self.parameters.chaining == "thesis":
            return chain_tasks(snapshot, self.parameters.utilization_max)
        if self.parameters.chaining == "rule_2012":
            return chain_2012(snapshot, self.parameters.utilization_max)
        return Chaining(snapshot.chains, [])

    def _scaling(self, snapshot: Snapshot, memory: NepheleMemory) -> _Scaled:
        own = self.parameters
        now = {name: task.parallelism for name, task in snapshot.elastic_tasks().items()}
        if own.scaling == "off":
            return _Scaled(now, [], NepheleMemory())
        before, known = memory.known, remembered(memory.known, snapshot, own.experiences)
        drained, was_draining = backlogs(snapshot), memory.draining
        memory = replace(memory, known=known, draining=bool(drained))
        grown = any(count > memory.seen.get(name, count) for name, count in now.items())
        if (grown and own.inactive_intervals) or memory.resting:
            return self._rest(now, memory, grown=grown)
        if was_draining and not drained:
            why = "a backlog was drained in this interval: how long items waited tells of it, not of the load"
            return _Scaled(now, [Reason(rule=RULE, why=why)], replace(memory, seen=now, asked=now))
        scaling = scale_reactively(snapshot, self._rules(), known)
        hiccups = _hold_in_hiccups(snapshot, before, scaling.replicas)
        drains = _drain(snapshot, drained, scaling, own.utilization_max)
        sources = scale_sources(snapshot, drained)
        wanted = {**now, **keep_forward_equal(snapshot, scaling.replicas), **sources.replicas}
        asked = {name: self._worthwhile(count, wanted[name]) for name, count in now.items()}
        added = any(asked[name] > count for name, count in now.items())
        resting = own.inactive_intervals if added else 0
        feasible = _feasible(snapshot, scaling.infeasible, {reason.task for reason in hiccups})
        decided = NepheleMemory(now, asked, resting, feasible and sources.feasible, known, memory.draining)
        return _Scaled(asked, [*scaling.reasons, *hiccups, *drains, *sources.reasons], decided)

    def _rest(self, now: dict[str, int], memory: NepheleMemory, *, grown: bool) -> _Scaled:
        """Repeat what was asked for, since it may still be under way; the count begins when replicas came."""
        asked = (
            {name: memory.asked.get(name, count) for name, count in now.items()} if memory.resting else now
        )
        resting = self.parameters.inactive_intervals if grown else memory.resting
        why = f"replicas were added, and nothing is scaled for {resting} interval(s) from here on"
        rested = replace(memory, seen=now, asked=asked, resting=max(0, resting - 1))
        return _Scaled(asked, [Reason(rule="inactive", why=why)], rested)

    def _rules(self) -> ScalingRules:
        own = self.parameters
        return ScalingRules(
            batching_weight=own.batching_weight,
            batching_yield=own.batching_yield,
            utilization_max=own.utilization_max,
            bottleneck_utilization=own.bottleneck_utilization,
            fit_limits=None if own.fit_limits is None else FitLimits(*own.fit_limits),
            step=own.rebalance_step,
            queue_limit=own.queue_limit,
        )

    def _worthwhile(self, now: int, wanted: int) -> int:
        return wanted if abs(wanted - now) >= self.parameters.min_change * now else now


def _hold_in_hiccups(snapshot: Snapshot, before: Experiences, replicas: dict[str, int]) -> list[Reason]:
    """Take back every replica that would be added for a hiccup; the reasons say so."""
    reasons = []
    for name, wanted in list(replicas.items()):
        count, now = snapshot.tasks[name].parallelism, experience(snapshot, name)
        if wanted > count and now is not None and is_hiccup(before.get(name, ()), now):
            replicas[name] = count
            why = f"{name} queued less than half as long before at this rate: one interval to wait and see"
            reasons.append(Reason(rule="hiccup", task=name, before=wanted, after=count, why=why))
    return reasons


def _drain(
    snapshot: Snapshot, drained: Collection[Backlog], scaling: Scaling, utilization_max: float
) -> list[Reason]:
    """What drains the backlogs of sources in time, and no replica less until they are drained.

    A source that catches up reads as fast as it can, so a task behind it is a bottleneck whatever its number
    of replicas: it gets those that drain the backlog in time, and not twice as many.
    """
    reasons = [one.reason() for one in drained]
    for name, (enough, target_per_s) in draining_replicas(snapshot, drained, utilization_max).items():
        now = snapshot.tasks[name].parallelism
        planned = 0 if name in scaling.bottlenecks else scaling.replicas.get(name, 0)
        before, scaling.replicas[name] = scaling.replicas.get(name, now), max(now, enough, planned)
        why = f"{enough} replicas of {name} take {target_per_s:.6g} items/s, which drains the backlog in time"
        if now > max(enough, planned):
            why = f"{why}; none is taken away before it is drained"
        reasons.append(Reason(rule=RULE, task=name, before=before, after=scaling.replicas[name], why=why))
    return reasons


def _feasible(snapshot: Snapshot, infeasible: Set[str], hiccups: Set[str | None]) -> bool:
    """Whether every constraint can be kept, those with a hiccup aside."""
    hopeless = [constraint for constraint in snapshot.constraints if constraint.name in infeasible]
    return all(hiccups & set(constraint.tasks()) for constraint in hopeless)


def _statistics(snapshot: Snapshot) -> list[Reason]:
    """The thesis bounds means; a constraint on a percentile is treated as one on the mean, and says so."""
    return [
        Reason(
            rule="statistic",
            constraint=constraint.name,
            why=f"nephele bounds the mean, and the {constraint.statistic} of {constraint.name} may be above",
        )
        for constraint in snapshot.constraints
        if constraint.statistic != "mean"
    ]
