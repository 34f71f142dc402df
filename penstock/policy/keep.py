"""The decision to leave everything as it is, and the one that changes nothing but numbers of replicas."""

from collections.abc import Mapping, Sequence

from penstock.policy.decision import Decision, Reason, Refusal
from penstock.stats.snapshot import Snapshot


def current_parallelism(snapshot: Snapshot) -> dict[str, int]:
    """The replicas that every elastic task has now."""
    return {name: task.parallelism for name, task in snapshot.elastic_tasks().items()}


def scale(
    snapshot: Snapshot,
    policy: str,
    parallelism: Mapping[str, int],
    reasons: Sequence[Reason],
    *,
    feasible: bool = True,
    refused: Sequence[Refusal] = (),
) -> Decision:
    """Give some tasks other numbers of replicas; other tasks, batch lifetimes and chains stay."""
    return Decision(
        policy=policy,
        parallelism={**current_parallelism(snapshot), **parallelism},
        batch_lifetime_ms={},
        chains=snapshot.chains,
        feasible=feasible,
        reasons=list(reasons),
        refused=list(refused),
    )


def keep(
    snapshot: Snapshot, policy: str, reasons: Sequence[Reason], *, refused: Sequence[Refusal] = ()
) -> Decision:
    """Change nothing."""
    return scale(snapshot, policy, {}, reasons, refused=refused)
