"""A policy that proposes what a test says, and snapshots that differ from one another as real ones do."""

from collections.abc import Mapping, Sequence
from typing import Any

import msgspec

from penstock.policy.decision import Decision, Reason
from penstock.policy.experience import RULE
from penstock.policy.guards.port import Guard, Seen
from penstock.policy.keep import current_parallelism
from penstock.stats.snapshot import Snapshot, StreamStats, TaskStats


class NoParameters(msgspec.Struct, frozen=True):
    """None."""


class Scripted:
    """Proposes one configuration after the other and repeats the last; `asked` counts in its memory."""

    name = "scripted"
    parameters = NoParameters()

    def __init__(self, *proposals: Mapping[str, int], **changes: Any) -> None:
        self._proposals = proposals
        self._changes = changes

    def initial_memory(self) -> int:
        return 0

    def decide(self, snapshot: Snapshot, memory: int) -> tuple[Decision, int]:
        parallelism = dict(self._proposals[min(memory, len(self._proposals) - 1)])
        made = proposal(snapshot, parallelism)
        return msgspec.structs.replace(made, **self._changes), memory + 1


def proposal(snapshot: Snapshot, parallelism: Mapping[str, int]) -> Decision:
    """A decision for these replicas."""
    return Decision(
        policy="scripted",
        parallelism={**current_parallelism(snapshot), **parallelism},
        batch_lifetime_ms={},
        chains=snapshot.chains,
        feasible=True,
        reasons=[Reason(rule="scripted", why="the test says so")],
    )


def task(replicas: int, **fields: Any) -> TaskStats:
    """An elastic task that was measured."""
    known: dict[str, Any] = {"kind": "task", "elastic": True, "processed_total": 100.0}
    return TaskStats(parallelism=replicas, **{**known, **fields})


def snapshot(tasks: Mapping[str, TaskStats] | None = None, **replicas: int) -> Snapshot:
    """A source and elastic tasks behind it, five seconds long."""
    all_tasks = {
        "source": TaskStats(kind="source", parallelism=1, rate_total=20.0),
        **{name: task(count) for name, count in replicas.items()},
        **(tasks or {}),
    }
    streams = [StreamStats(origin="source", receiver=name) for name in all_tasks if name != "source"]
    return Snapshot(interval_s=5, tasks=all_tasks, streams=streams)


def shown(decision: Decision) -> Decision:
    """The same, and all its replicas have been enough before."""
    seen = [
        Reason(rule=RULE, task=name, after=count, why="seen") for name, count in decision.parallelism.items()
    ]
    return msgspec.structs.replace(decision, reasons=[*decision.reasons, *seen])


def steps(
    guard: Guard[Any],
    script: Sequence[tuple[Snapshot, Mapping[str, int]]],
    *,
    interval_s: float = 5.0,
    are_shown: Sequence[int] = (),
) -> list[Decision]:
    """What one guard leaves of proposals `interval_s` apart; the numbers of some were enough before."""
    memory, decisions = guard.initial_memory(), []
    for index, (one, wanted) in enumerate(script, start=1):
        seen = Seen(one, index * interval_s)
        proposed = proposal(one, wanted)
        proposed = shown(proposed) if index in are_shown else proposed
        decision, memory = guard.review(seen, proposed, memory)
        memory = guard.settle(seen, decision, memory)
        decisions.append(decision)
    return decisions
