"""DS2's scaling manager: when an estimate is acted on (OSDI 2018, sections 4.2.1 and 4.2.2).

In this order: gather for a policy interval; ignore the warm-up; undo a change that made things worse;
estimate, with what drains a backlog (catch_up.py); correct for overheads that true rates do not show (target
rate ratio); wait for the activation; ignore minor changes; never try again what was undone under this load;
stop after a number of decisions under the same load.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from penstock.policy.agreement import agreed
from penstock.policy.catch_up import backlogs, held_replicas, with_drained
from penstock.policy.decision import Decision, Reason, Refusal
from penstock.policy.ds2_parameters import Ds2Parameters
from penstock.policy.ds2_plan import Plan, plan
from penstock.policy.ds2_rates import missing_fields
from penstock.policy.ds2_traversal import traverse
from penstock.policy.keep import current_parallelism, keep, scale
from penstock.policy.load import same_load, source_rates, source_shortfall
from penstock.policy.source_scaling import scale_sources
from penstock.policy.trial import Trial, Verdict, trial_of
from penstock.policy.window import Window, gather
from penstock.stats.snapshot import Snapshot

# A source that has hardly started shows an enormous ratio; at most this much is believed in one step.
_LARGEST_CORRECTION = 2.0


@dataclass(frozen=True, slots=True)
class ManagerMemory:
    """What the manager carries from snapshot to snapshot."""

    window: Window = field(default_factory=Window)
    configuration: Mapping[str, int] = field(default_factory=dict)
    intervals: int = 0
    proposals: tuple[Mapping[str, int], ...] = ()
    correction: float = 1.0
    rates_per_s: Mapping[str, float] = field(default_factory=dict)
    decisions: int = 0
    issued: Mapping[str, int] | None = None
    trial: Trial | None = None
    undone: tuple[Mapping[str, int], ...] = ()


def manage(
    policy: str, settings: Ds2Parameters, snapshot: Snapshot, memory: ManagerMemory
) -> tuple[Decision, ManagerMemory]:
    """The decision for `snapshot`, one step of the list above after the other."""
    memory = _notice_change(snapshot, memory)
    window, gathered = gather(memory.window, snapshot, settings.policy_interval_s)
    memory = replace(memory, window=window)
    if gathered is None:
        return _wait(snapshot, policy, "policy_interval", "the policy interval is not over"), memory
    memory = _notice_load(gathered, replace(memory, intervals=memory.intervals + 1), settings.rate_change)
    if memory.intervals <= settings.warm_up_intervals:
        why = f"warm-up, interval {memory.intervals} of {settings.warm_up_intervals} after a change"
        return _wait(snapshot, policy, "warm_up", why), memory
    undo, memory = _judge_trial(gathered, memory, settings)
    if undo is not None:
        return scale(snapshot, policy, undo, [_undo_reason()]), memory
    estimate, memory = _estimate(gathered, memory, settings)
    if estimate.missing is not None:
        lacks = missing_fields(gathered.tasks[estimate.missing])
        why = f"{estimate.missing!r} lacks {lacks}: rates are unknown from there on; nothing changes"
        return _wait(snapshot, policy, "missing_data", why, task=estimate.missing), memory
    return _act(policy, settings, gathered, memory, estimate)


def _notice_change(snapshot: Snapshot, memory: ManagerMemory) -> ManagerMemory:
    """Whoever changed the parallelism: what was measured before it no longer counts."""
    configuration = current_parallelism(snapshot)
    if configuration == memory.configuration:
        return memory
    return replace(memory, configuration=configuration, intervals=0, proposals=())


def _notice_load(snapshot: Snapshot, memory: ManagerMemory, tolerance: float) -> ManagerMemory:
    rates = source_rates(snapshot)
    if same_load(memory.rates_per_s, rates, tolerance):
        return memory
    return replace(memory, rates_per_s=rates, decisions=0, undone=())


def _judge_trial(
    snapshot: Snapshot, memory: ManagerMemory, settings: Ds2Parameters
) -> tuple[Mapping[str, int] | None, ManagerMemory]:
    trial, tolerance = memory.trial, settings.rollback_tolerance
    if trial is None or tolerance is None:
        return None, memory
    verdict, going_on = trial.judge(snapshot, tolerance, settings.rate_change)
    memory = replace(memory, trial=going_on)
    if verdict is not Verdict.WORSE:
        return None, memory
    undone = (*memory.undone, trial.after)
    return trial.before, replace(memory, undone=undone, issued=trial.before, intervals=0, proposals=())


def _estimate(
    snapshot: Snapshot, memory: ManagerMemory, settings: Ds2Parameters
) -> tuple[Plan, ManagerMemory]:
    """Equations 1-8, and the correction that the reference code applies after a step without a scale-up.

    What drains a backlog counts as if it arrived (`catch_up`). Sources have a rule of their own
    (source_scaling.py), since a change of theirs takes a boundary.
    """
    drained = backlogs(snapshot)
    needs = traverse(with_drained(snapshot, drained))

    def planned(correction: float) -> Plan:
        made = plan(snapshot, needs, (1 + settings.headroom) * correction, settings.execution)
        if made.missing is not None:
            return made
        sources = scale_sources(snapshot, drained, 1 + settings.headroom)
        kept, held = held_replicas(snapshot, drained, made.parallelism)
        return Plan(
            parallelism={**kept, **sources.replicas},
            reasons=(*(one.reason() for one in drained), *sources.reasons, *made.reasons, *held),
            feasible=made.feasible and sources.feasible,
        )

    estimate = planned(memory.correction)
    now = current_parallelism(snapshot)
    shortfall = source_shortfall(snapshot)
    in_effect = memory.issued is None or memory.issued == now
    grows = any(count > now[task] for task, count in estimate.parallelism.items())
    limit = settings.target_rate_ratio
    if limit is None or shortfall is None or shortfall <= limit or grows or not in_effect:
        return estimate, memory
    memory = replace(memory, correction=memory.correction * min(shortfall, _LARGEST_CORRECTION))
    corrected = planned(memory.correction)
    reason = Reason(
        rule="target_rate_ratio",
        inputs={"target_over_observed": shortfall, "limit": limit, "correction": memory.correction},
        why=f"the sources reach 1/{shortfall:.4g} of their rate although true rates say the replicas suffice",
    )
    return replace(corrected, reasons=(reason, *corrected.reasons)), memory


def _act(
    policy: str, settings: Ds2Parameters, snapshot: Snapshot, memory: ManagerMemory, estimate: Plan
) -> tuple[Decision, ManagerMemory]:
    now = current_parallelism(snapshot)
    proposals = (*memory.proposals, {**now, **estimate.parallelism})[-settings.activation_intervals :]
    memory = replace(memory, proposals=proposals)
    wanted = agreed(proposals, settings.activation)
    held = _held_back(settings, memory, now, wanted)
    if held is not None:
        guard, why = held
        changes = [(task, count) for task, count in wanted.items() if count != now[task]]
        refused = [
            Refusal(guard=f"ds2.{guard}", task=task, before=now[task], after=count, why=why)
            for task, count in changes
        ]
        decision = scale(snapshot, policy, {}, estimate.reasons, feasible=estimate.feasible, refused=refused)
        return decision, memory
    decision = scale(snapshot, policy, wanted, estimate.reasons, feasible=estimate.feasible)
    if wanted == now or wanted == memory.issued:
        return decision, memory
    return decision, replace(
        memory,
        intervals=0,
        proposals=(),
        decisions=memory.decisions + 1,
        issued=wanted,
        trial=trial_of(snapshot, wanted),
    )


def _held_back(
    settings: Ds2Parameters, memory: ManagerMemory, now: Mapping[str, int], wanted: Mapping[str, int]
) -> tuple[str, str] | None:
    """The first rule that forbids `wanted`, and why."""
    if len(memory.proposals) < settings.activation_intervals:
        return "activation", f"evaluation {len(memory.proposals)} of {settings.activation_intervals}"
    largest = max((abs(count - now[task]) for task, count in wanted.items()), default=0)
    if largest < settings.min_change:
        return "min_change", f"no task changes by {settings.min_change} or more"
    if wanted in memory.undone:
        return "rollback", "this configuration was undone under the same load because less was delivered"
    limit = settings.max_decisions
    if limit is not None and memory.decisions >= limit and wanted != memory.issued:
        return "max_decisions", f"{limit} decisions were made under this load and more would not help"
    return None


def _wait(snapshot: Snapshot, policy: str, rule: str, why: str, *, task: str | None = None) -> Decision:
    return keep(snapshot, policy, [Reason(rule=rule, task=task, why=why)])


def _undo_reason() -> Reason:
    return Reason(
        rule="rollback", why="a smaller share of the load is delivered since the last change; it is undone"
    )
