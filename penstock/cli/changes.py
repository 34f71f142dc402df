"""What a decision changes, in short words: for the view, the log lines and the list of decisions."""

from collections.abc import Iterator

from penstock.control.loop import Cycle
from penstock.policy.decision import Decision
from penstock.policy.measured import sequence_latency_ms
from penstock.stats.snapshot import Snapshot


def changed_settings(snapshot: Snapshot, decision: Decision) -> list[str]:
    """For example "work 2 -> 5 replicas"; nothing for what stays as it was in the snapshot."""
    return [
        *_replicas(snapshot, decision),
        *(f"keys of {task} divided anew" for task in decision.key_tables),
        *_lifetimes(snapshot, decision),
        *_chains(snapshot, decision),
    ]


def decision_line(cycle: Cycle) -> str:
    """One interval as a line of text: constraints against their bounds, changes, and the first reason."""
    decision, effect = cycle.decision, cycle.effect
    held = ", ".join(_constraints(cycle.snapshot)) or "no constraint"
    changes = changed_settings(cycle.snapshot, decision)
    parts = [held, ", ".join(changes) if changes else "no change"]
    if not decision.feasible:
        parts.append("infeasible")
    if effect is not None and effect.problem is not None:
        parts.append(f"not carried out: {effect.problem}")
    return "; ".join([*parts, *reasons(decision)[:1]])


def reasons(decision: Decision) -> list[str]:
    """Why: first what is about replicas, then what was held back, then the rest."""
    scaling = [reason for reason in decision.reasons if reason.task is not None]
    others = [reason for reason in decision.reasons if reason.task is None]
    refused = [f"held back by {refusal.guard}: {refusal.why}" for refusal in decision.refused]
    return [*(f"{r.rule}: {r.why}" for r in scaling), *refused, *(f"{r.rule}: {r.why}" for r in others)]


def _constraints(snapshot: Snapshot) -> Iterator[str]:
    for constraint in snapshot.constraints:
        latency_ms = sequence_latency_ms(snapshot, constraint)
        measured = "not measured, bound" if latency_ms is None else f"{latency_ms:.2f} of"
        yield f"{constraint.name} {measured} {constraint.latency_ms:g} ms"


def _replicas(snapshot: Snapshot, decision: Decision) -> Iterator[str]:
    for task, count in decision.parallelism.items():
        now = snapshot.tasks[task].parallelism
        if count != now:
            yield f"{task} {now} -> {count} replicas"


def _lifetimes(snapshot: Snapshot, decision: Decision) -> Iterator[str]:
    now = {stream.name: stream.batch_lifetime_ms for stream in snapshot.streams}
    for stream, lifetime_ms in decision.batch_lifetime_ms.items():
        before_ms = now[stream]
        # What rounds to the same figures is no change worth a word.
        shown = "?" if before_ms is None else f"{before_ms:.1f}"
        if shown != f"{lifetime_ms:.1f}":
            yield f"{stream} {shown} -> {lifetime_ms:.1f} ms"


def _chains(snapshot: Snapshot, decision: Decision) -> Iterator[str]:
    if decision.chains and sorted(decision.chains) != sorted(snapshot.chains):
        chains = [" + ".join(chain) for chain in decision.chains if len(chain) > 1]
        yield f"chained {', '.join(chains)}" if chains else "everything unchained"
