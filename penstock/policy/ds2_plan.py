"""From needs to whole replicas: ceilings, over-provisioning, limits, and the variant of shared workers.

Each task gets ceil(correction * (1 + headroom) * pi_i), pi_i being real-valued, within its own limits.
Where every worker runs every task (Timely; DS2, OSDI 2018, section 4.3), all get the same number: the sum
of all pi_i.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

from penstock.policy.decision import Evidence, Reason
from penstock.policy.ds2_rates import Knowledge
from penstock.policy.ds2_traversal import Need, replicas
from penstock.policy.scaling import keep_forward_equal
from penstock.stats.snapshot import Snapshot

Execution = Literal["per_task", "shared_workers"]


@dataclass(frozen=True, slots=True)
class Plan:
    """What the needs ask for. `missing` names what was not measured; then nothing may be done."""

    parallelism: Mapping[str, int]
    reasons: tuple[Reason, ...]
    feasible: bool
    missing: str | None = None


def plan(snapshot: Snapshot, needs: Mapping[str, Need], factor: float, execution: Execution) -> Plan:
    """The parallelism of every elastic task, each with its reason."""
    elastic = [needs[name] for name in snapshot.elastic_tasks(sources=False)]
    for need in elastic:
        if need.optimum is None and need.knowledge is Knowledge.MISSING:
            return Plan({}, (), feasible=True, missing=need.blamed)
    wanted = {
        name: replicas(need.optimum * factor)
        for name, need in needs.items()
        if need.optimum is not None and snapshot.tasks[name].kind != "source"
    }
    busy = {name: need.optimum or 0.0 for name, need in needs.items() if name in wanted}
    if execution == "shared_workers":
        wanted = dict.fromkeys(wanted, sum(wanted.values()))
        busy = dict.fromkeys(busy, sum(busy.values()))
    within = {
        need.task: snapshot.tasks[need.task].within_limits(wanted[need.task])
        for need in elastic
        if need.task in wanted
    }
    parallelism = keep_forward_equal(snapshot, within)
    reasons = [
        _reason(need, snapshot, wanted[need.task], parallelism[need.task], busy[need.task])
        if need.task in wanted
        else _idle(need, snapshot.tasks[need.task].parallelism)
        for need in elastic
    ]
    # Where workers are shared, a task that is not elastic runs on them like any other.
    bound = wanted if execution == "per_task" else within
    short = [_too_small(snapshot, needs[name], wanted[name]) for name in bound]
    shortages = [reason for reason in short if reason is not None]
    return Plan(parallelism, (*reasons, *shortages), feasible=not shortages)


def _reason(need: Need, snapshot: Snapshot, wanted: int, after: int, busy: float) -> Reason:
    """`busy` is how many replicas the work keeps busy, and so what utilisation to expect."""
    target, each = need.target_per_s or 0.0, need.per_replica_per_s or 0.0
    inputs: Evidence = {"target_per_s": target, "true_rate_per_replica_per_s": each, "optimum": need.optimum}
    if need.selectivity is not None:
        inputs["selectivity"] = need.selectivity
    clamped = f", {after} with its limits and those joined to it" if after != wanted else ""
    return Reason(
        rule="ds2",
        task=need.task,
        before=snapshot.tasks[need.task].parallelism,
        after=after,
        inputs=inputs,
        prediction={"utilization": busy / after},
        why=f"{target:.6g} items/s come in and a replica can process {each:.6g}: {wanted} needed{clamped}",
    )


def _idle(need: Need, before: int) -> Reason:
    where = "it" if need.blamed == need.task else f"{need.blamed!r} before it"
    return Reason(
        rule="ds2_idle",
        task=need.task,
        before=before,
        after=before,
        why=f"{where} did no work in this interval, so its rate is unknown; its replicas stay",
    )


def _too_small(snapshot: Snapshot, need: Need, wanted: int) -> Reason | None:
    task = snapshot.tasks[need.task]
    possible = task.within_limits(wanted) if task.elastic else task.parallelism
    if wanted <= possible:
        return None
    limit = f"may have {possible}" if task.elastic else f"has a fixed parallelism of {possible}"
    return Reason(
        rule="ds2_limit",
        task=need.task,
        inputs={"needed": wanted, "possible": possible},
        why=f"{need.task} needs {wanted} replicas and {limit}: the sources' rates cannot be sustained",
    )
