"""The decision to leave everything as it is, and the one that changes nothing but numbers of replicas."""

from collections.abc import Mapping, Sequence

from penstock.policy.decision import Decision, Reason, Refusal
from penstock.policy.scaling import keep_forward_equal
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
    """Give some tasks other numbers of replicas; other tasks, batch lifetimes and chains stay.

    Tasks that forward streams join get the same number, whichever of them the policy had in mind.
    """
    now = current_parallelism(snapshot)
    wanted = {**now, **parallelism}
    equal = wanted if wanted == now else keep_forward_equal(snapshot, wanted)
    followers = [
        Reason(
            rule="forward",
            task=task,
            before=now[task],
            after=count,
            why=f"{task!r} is joined one to one with a task that needs {count}",
        )
        for task, count in equal.items()
        if count != wanted[task]
    ]
    return Decision(
        policy=policy,
        parallelism=equal,
        batch_lifetime_ms={},
        chains=snapshot.chains,
        feasible=feasible,
        reasons=[*reasons, *followers],
        refused=list(refused),
    )


def keep(
    snapshot: Snapshot, policy: str, reasons: Sequence[Reason], *, refused: Sequence[Refusal] = ()
) -> Decision:
    """Change nothing."""
    return scale(snapshot, policy, {}, reasons, refused=refused)
