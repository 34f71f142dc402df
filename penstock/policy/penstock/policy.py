"""The policy `penstock`: look, learn, plan, choose, and change only what is worth it.

learning.py   what an interval teaches       counted, onset, forecast, capacity, waiting, tails, margin, price
planning.py   the replicas that are wanted   forecast, season, demand, model, choice
ordering.py   those that are ordered         price, proved
chains.py, lifetimes.py                      with the replicas of now
"""

from dataclasses import replace

import msgspec

from penstock.policy.decision import Decision, Reason
from penstock.policy.keep import current_parallelism, keep, scale
from penstock.policy.penstock.chains import chained
from penstock.policy.penstock.demand import due_per_s
from penstock.policy.penstock.learning import after, share_of
from penstock.policy.penstock.lifetimes import lifetimes
from penstock.policy.penstock.memory import Memory
from penstock.policy.penstock.ordering import Ordering
from penstock.policy.penstock.parameters import PenstockParameters
from penstock.policy.penstock.planning import Wanted, wanted
from penstock.policy.penstock.servers import UnknownError
from penstock.stats.snapshot import Snapshot

__all__ = ["Penstock", "PenstockParameters"]

_PLANS = 40


class Penstock:
    """The policy `penstock`."""

    name = "penstock"

    def __init__(self, parameters: PenstockParameters) -> None:
        self.parameters = parameters

    def initial_memory(self) -> Memory:
        """Nothing is known."""
        return Memory()

    def decide(self, snapshot: Snapshot, memory: Memory) -> tuple[Decision, Memory]:
        """The fewest replicas that keep the constraints, if it is worth a change."""
        refused = _unusable(snapshot, memory)
        if refused is not None:
            return keep(snapshot, self.name, [refused]), memory
        memory = after(snapshot, memory, self.parameters)
        if memory.prices.pause_s > 0.0:
            why = f"the flow has stood still for {memory.prices.pause_s:.3g} s: nothing is decided by that"
            return self._repeated(snapshot, memory, [Reason(rule="standing_still", why=why)]), memory
        try:
            found = wanted(snapshot, memory, self.parameters)
        except UnknownError as unknown:
            why = f"{unknown}; nothing changes until it is"
            return keep(snapshot, self.name, [Reason(rule="missing_data", why=why)]), memory
        memory = replace(
            memory,
            plans=(*memory.plans, found.plan)[-_PLANS:],
            prices=memory.prices.wished(found.enough.replicas),
        )
        decision, memory = self._ordered(snapshot, memory, found)
        decision, memory = self._with_chains(snapshot, memory, found, decision)
        return self._with_lifetimes(snapshot, memory, found, decision), memory

    def _ordered(self, snapshot: Snapshot, memory: Memory, found: Wanted) -> tuple[Decision, Memory]:
        ordering = Ordering(snapshot, found, memory.prices, self.parameters)
        now = current_parallelism(snapshot)
        if (order := ordering.awaited()) is not None:
            why = f"replicas that were ordered {order.age_s:g} s ago are on their way"
            reasons = [
                Reason(rule="order", task=task, before=now[task], after=count, why=why)
                for task, count in order.replicas.items()
                if now.get(task, count) != count
            ]
            return self._repeated(snapshot, memory, reasons), memory
        changed = ordering.changed(now)
        reasons = ordering.reasons(now, changed)
        decision = scale(snapshot, self.name, changed, reasons, feasible=not found.need.infeasible)
        if decision.parallelism != now:
            prices = memory.prices.ordered(decision.parallelism, now, found.expected, drains=found.drains)
            memory = replace(memory, prices=prices)
        return decision, memory

    def _repeated(self, snapshot: Snapshot, memory: Memory, reasons: list[Reason]) -> Decision:
        """What was ordered, if it is on its way; else nothing."""
        order = memory.prices.order
        known = current_parallelism(snapshot)
        again = {} if order is None else {task: n for task, n in order.replicas.items() if task in known}
        return scale(snapshot, self.name, again, reasons)

    def _with_chains(
        self, snapshot: Snapshot, memory: Memory, found: Wanted, decision: Decision
    ) -> tuple[Decision, Memory]:
        if self.parameters.chains == "off" or decision.parallelism != current_parallelism(snapshot):
            return decision, memory
        shares = [share_of(one, self.parameters) for one in snapshot.constraints]
        wanted = chained(
            snapshot,
            memory.counts,
            memory.chains,
            grows=_grows(found),
            may_join=memory.prices.may_save(max(shares, default=self.parameters.share)),
        )
        changed = msgspec.structs.replace(
            decision, chains=wanted.chains, reasons=[*decision.reasons, *wanted.reasons]
        )
        return changed, replace(memory, chains=wanted.wish)

    def _with_lifetimes(
        self, snapshot: Snapshot, memory: Memory, found: Wanted, decision: Decision
    ) -> Decision:
        if self.parameters.lifetimes == "off":
            return decision
        changed, reasons = lifetimes(
            snapshot, memory.counts, self.parameters.envelope_ms, found.need.infeasible
        )
        return msgspec.structs.replace(
            decision, batch_lifetime_ms=changed, reasons=[*decision.reasons, *reasons]
        )


def _grows(found: Wanted) -> float:
    """What is planned for over what is expected, of the source where it is most."""
    shares = [rate / found.expected[name] for name, rate in found.plan.items() if found.expected[name] > 0.0]
    return max(shares, default=1.0)


def _unusable(snapshot: Snapshot, memory: Memory) -> Reason | None:
    """Why nothing can be learnt from a snapshot."""
    if memory.last is not None and _repeats(snapshot, memory.last):
        why = "every measurement equals the last snapshot's: they were not refreshed"
        return Reason(rule="stale_data", why=why)
    for name, task in snapshot.tasks.items():
        if task.kind == "source" and due_per_s(task) is None:
            why = f"{name!r} lacks rate_total; nothing changes until it is measured"
            return Reason(rule="missing_data", task=name, why=why)
    return None


def _repeats(snapshot: Snapshot, last: Snapshot) -> bool:
    working = any(task.processed_total or task.service_ms for task in snapshot.tasks.values())
    return working and snapshot.tasks == last.tasks and snapshot.streams == last.streams
