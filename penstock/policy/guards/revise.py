"""Taking back parts of a decision, with a record of what was taken back."""

import msgspec

from penstock.policy.decision import Decision, Refusal
from penstock.policy.keep import current_parallelism
from penstock.stats.snapshot import Snapshot


def changes(snapshot: Snapshot, decision: Decision) -> dict[str, tuple[int, int]]:
    """The tasks whose replicas would change: from how many, to how many."""
    now = current_parallelism(snapshot)
    return {
        task: (now[task], count)
        for task, count in decision.parallelism.items()
        if task in now and count != now[task]
    }


def allow(decision: Decision, guard: str, task: str, *, before: int, allowed: int, why: str) -> Decision:
    """Give `task` the replicas `allowed` instead of those proposed."""
    wanted = decision.parallelism[task]
    refusal = Refusal(guard=guard, task=task, before=before, after=wanted, why=why)
    return msgspec.structs.replace(
        decision,
        parallelism={**decision.parallelism, task: allowed},
        refused=[*decision.refused, refusal],
    )


def refuse_everything(snapshot: Snapshot, decision: Decision, guard: str, why: str) -> Decision:
    """Take back every change: replicas, batch lifetimes and chains."""
    for task, (before, _) in changes(snapshot, decision).items():
        decision = allow(decision, guard, task, before=before, allowed=before, why=why)
    lifetimes = {stream.name: stream.batch_lifetime_ms for stream in snapshot.streams}
    refused = [
        Refusal(guard=guard, stream=stream, before=lifetimes.get(stream), after=lifetime_ms, why=why)
        for stream, lifetime_ms in decision.batch_lifetime_ms.items()
        if lifetimes.get(stream) != lifetime_ms
    ]
    if decision.chains != snapshot.chains:
        refused.append(Refusal(guard=guard, why=f"chains stay: {why}"))
    return msgspec.structs.replace(
        decision,
        batch_lifetime_ms={},
        chains=snapshot.chains,
        refused=[*decision.refused, *refused],
    )
