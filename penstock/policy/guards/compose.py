"""Guards around any policy: a policy again, which never acts on bad data and never too much at once.

Inspectors come first: data they refuse is not shown to the policy at all. Then each guard reviews what
the ones before it left. The order matters: first what doubts a proposal, then what limits its size and
its time, then undoing a bad change, which must not wait, and what may never be broken. The last one adds who
owns which keys then. A guard that wants something else than the proposal says so in `refused`.
"""

import math
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

import msgspec

from penstock.policy.decision import Decision, Reason, Refusal
from penstock.policy.guards.activation import Activation
from penstock.policy.guards.bounds import Bounds
from penstock.policy.guards.cool_down import CoolDown
from penstock.policy.guards.dead_band import DeadBand
from penstock.policy.guards.divide_keys import DivideKeys
from penstock.policy.guards.forward import Forward
from penstock.policy.guards.ineffective import Ineffective
from penstock.policy.guards.maximum_step import MaximumStep
from penstock.policy.guards.missing_data import MissingData
from penstock.policy.guards.parameters import GuardParameters
from penstock.policy.guards.port import Guard, Inspector, Seen
from penstock.policy.guards.rollback import Rollback
from penstock.policy.guards.scale_down_window import ScaleDownWindow
from penstock.policy.guards.slot_budget import SlotBudget
from penstock.policy.guards.stale_data import StaleData
from penstock.policy.guards.warm_up import WarmUp
from penstock.policy.keep import current_parallelism, keep
from penstock.policy.port import Policy
from penstock.stats.snapshot import Snapshot

M = TypeVar("M")


@dataclass(frozen=True, slots=True)
class GuardedMemory(Generic[M]):
    """The policy's memory, those of the inspectors and guards in their order, and the time seen so far."""

    policy: M
    inspectors: tuple[Any, ...]
    guards: tuple[Any, ...]
    elapsed_s: float = 0.0


class GuardedPolicy(Generic[M]):
    """A policy that is held back by guards; it has the name and the parameters of the policy inside."""

    def __init__(
        self, policy: Policy[M], inspectors: tuple[Inspector[Any], ...], guards: tuple[Guard[Any], ...]
    ) -> None:
        self._policy = policy
        self._inspectors = inspectors
        self._guards = guards

    @property
    def name(self) -> str:
        """The name of the policy inside."""
        return self._policy.name

    @property
    def parameters(self) -> msgspec.Struct:
        """The parameters of the policy inside."""
        return self._policy.parameters

    def initial_memory(self) -> GuardedMemory[M]:
        """All memories at their beginning."""
        return GuardedMemory(
            self._policy.initial_memory(),
            tuple(inspector.initial_memory() for inspector in self._inspectors),
            tuple(guard.initial_memory() for guard in self._guards),
        )

    def decide(self, snapshot: Snapshot, memory: GuardedMemory[M]) -> tuple[Decision, GuardedMemory[M]]:
        """The policy's decision, less what must not be done now."""
        passed_s = snapshot.interval_s if math.isfinite(snapshot.interval_s) else 0.0
        seen = Seen(snapshot, memory.elapsed_s + passed_s)
        refusals = [
            refusal
            for inspector, own in zip(self._inspectors, memory.inspectors, strict=True)
            for refusal in inspector.inspect(seen, own)
        ]
        if refusals:
            decision = keep(snapshot, self.name, [_no_action(refusals)], refused=refusals)
            inner, guards = memory.policy, memory.guards
        else:
            decision, inner = self._policy.decide(snapshot, memory.policy)
            decision, guards = self._review(seen, decision, memory.guards)
        inspectors = tuple(
            inspector.settle(seen, decision, own)
            for inspector, own in zip(self._inspectors, memory.inspectors, strict=True)
        )
        return decision, GuardedMemory(inner, inspectors, guards, seen.now_s)

    def _review(
        self, seen: Seen, decision: Decision, memories: tuple[Any, ...]
    ) -> tuple[Decision, tuple[Any, ...]]:
        # A policy lists every elastic task; should one be left out, it stays as it is.
        everyone = {**current_parallelism(seen.snapshot), **decision.parallelism}
        decision = msgspec.structs.replace(decision, parallelism=everyone)
        reviewed = []
        for guard, own in zip(self._guards, memories, strict=True):
            decision, after = guard.review(seen, decision, own)
            reviewed.append(after)
        settled = [
            guard.settle(seen, decision, own) for guard, own in zip(self._guards, reviewed, strict=True)
        ]
        return decision, tuple(settled)


def guarded(policy: Policy[M], parameters: GuardParameters | None = None) -> GuardedPolicy[M]:
    """`policy` with all guards around it."""
    own = parameters if parameters is not None else GuardParameters()
    guards: list[Guard[Any]] = [WarmUp(own.warm_up_s)]
    if own.ineffective_gain is not None:
        guards.append(Ineffective(own.ineffective_gain, own.memory_s, own.load_tolerance))
    guards += [
        Activation(own.activation_intervals, own.activation),
        ScaleDownWindow(own.scale_down_window_s, own.scale_down_shown_window_s),
        DeadBand(own.dead_band, own.dead_band_s),
        MaximumStep(own.max_step_up, own.max_step_down),
        CoolDown(own.cool_down_intervals),
    ]
    if own.rollback_tolerance is not None:
        guards.append(
            Rollback(own.rollback_tolerance, own.rollback_settle_s, own.memory_s, own.load_tolerance)
        )
    guards += [Bounds(), Forward(), SlotBudget(own.slot_budget)]
    if own.divide_keys_above is not None:
        guards.append(
            DivideKeys(own.divide_keys_above, own.divide_keys_gain, own.divide_keys_intervals, own.warm_up_s)
        )
    return GuardedPolicy(policy, (MissingData(), StaleData(own.apply_timeout_s)), tuple(guards))


def _no_action(refusals: list[Refusal]) -> Reason:
    first = refusals[0]
    return Reason(rule=first.guard, task=first.task, stream=first.stream, why=f"no action: {first.why}")
