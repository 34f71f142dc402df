"""A change that made things worse is undone, and not tried again under the same load.

Worse means that a smaller share of the same load is delivered than before, or that replicas were only
taken away and a constraint that held is now violated, in several intervals in a row, from `settle_s` after
the change on. What was undone is remembered for `memory_s` or until the load changes.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import ClassVar

import msgspec

from penstock.policy.decision import Decision, Reason
from penstock.policy.guards.port import Seen
from penstock.policy.guards.revise import allow, changes
from penstock.policy.load import same_load, source_rates
from penstock.policy.measured import sequence_latency_ms
from penstock.policy.trial import Trial, Verdict, trial_of
from penstock.stats.snapshot import Snapshot


@dataclass(frozen=True, slots=True)
class Undone:
    """A configuration that was undone, when, and under which load."""

    at_s: float
    parallelism: Mapping[str, int]
    rates_per_s: Mapping[str, float]


@dataclass(frozen=True, slots=True)
class RollbackMemory:
    """The change on trial, the constraints that held before it, and what was undone."""

    trial: Trial | None = None
    issued_s: float = 0.0
    held: frozenset[str] = frozenset()
    undone: tuple[Undone, ...] = ()


@dataclass(frozen=True, slots=True)
class Rollback:
    """The guard `rollback`."""

    tolerance: float
    settle_s: float
    memory_s: float
    load_tolerance: float
    name: ClassVar[str] = "rollback"

    def initial_memory(self) -> RollbackMemory:
        """Nothing on trial."""
        return RollbackMemory()

    def review(
        self, seen: Seen, proposed: Decision, memory: RollbackMemory
    ) -> tuple[Decision, RollbackMemory]:
        """Put the former configuration in place of the proposal, or refuse what was undone before."""
        memory = replace(memory, undone=tuple(one for one in memory.undone if self._remembered(seen, one)))
        trial = memory.trial
        if trial is not None and seen.now_s - memory.issued_s >= self.settle_s:
            violated = _violated(seen.snapshot, memory.held) if _only_shrinks(trial) else None
            verdict, going_on = trial.judge(
                seen.snapshot, self.tolerance, self.load_tolerance, otherwise_bad=violated is not None
            )
            memory = replace(memory, trial=going_on)
            if verdict is Verdict.WORSE:
                undone = Undone(seen.now_s, trial.after, trial.rates_per_s)
                memory = replace(memory, undone=(*memory.undone, undone))
                return self._undo(seen.snapshot, proposed, trial, violated), memory
        if any(proposed.parallelism == one.parallelism for one in memory.undone):
            why = "this configuration was undone under the same load because it made things worse"
            for task, (before, _) in changes(seen.snapshot, proposed).items():
                proposed = allow(proposed, self.name, task, before=before, allowed=before, why=why)
        return proposed, memory

    def settle(self, seen: Seen, issued: Decision, memory: RollbackMemory) -> RollbackMemory:
        """Put a change on trial; what undoes another one is not judged again."""
        trial = trial_of(seen.snapshot, issued.parallelism)
        if trial is None or any(one.at_s == seen.now_s for one in memory.undone):
            return memory
        return replace(memory, trial=trial, issued_s=seen.now_s, held=_held(seen.snapshot))

    def _remembered(self, seen: Seen, undone: Undone) -> bool:
        recent = seen.now_s - undone.at_s <= self.memory_s
        return recent and same_load(undone.rates_per_s, source_rates(seen.snapshot), self.load_tolerance)

    def _undo(self, snapshot: Snapshot, proposed: Decision, trial: Trial, violated: str | None) -> Decision:
        cause = f"constraint {violated!r} is violated" if violated else "less of the load is delivered"
        why = f"{cause} since the last change; it is undone"
        for task, count in trial.before.items():
            now = snapshot.tasks[task].parallelism
            if proposed.parallelism[task] not in (count, now):
                proposed = allow(proposed, self.name, task, before=now, allowed=count, why=why)
        return msgspec.structs.replace(
            proposed,
            parallelism={**proposed.parallelism, **trial.before},
            reasons=[*proposed.reasons, Reason(rule=self.name, constraint=violated, why=why)],
        )


def _only_shrinks(trial: Trial) -> bool:
    return all(count <= trial.before.get(task, count) for task, count in trial.after.items())


def _held(snapshot: Snapshot) -> frozenset[str]:
    latencies = {
        one.name: (sequence_latency_ms(snapshot, one), one.latency_ms) for one in snapshot.constraints
    }
    return frozenset(
        name for name, (latency, bound) in latencies.items() if latency is not None and latency <= bound
    )


def _violated(snapshot: Snapshot, held: frozenset[str]) -> str | None:
    """A constraint that was held and demonstrably is no longer."""
    for constraint in snapshot.constraints:
        latency_ms = sequence_latency_ms(snapshot, constraint)
        if constraint.name in held and latency_ms is not None and latency_ms > constraint.latency_ms:
            return constraint.name
    return None
