"""Chains: tasks in a row share a process where that is worth more than a processor for each.

Joined tasks hand items over without an envelope, a way and a queue, and one process does the work of all. As
few processes as possible are wanted whose load stays below LIMIT at the load that is planned for (Algorithms
9 and 10 of the thesis, chaining.py). Whether a bound is kept then is predicted: its latency becomes

    shorter by the latency of the streams inside, longer by K(S, rho) - wait before the first of them

with S, rho and their variation of the whole chain (scaling_chains.py) and K as in waiting.py. What was
measured has the work of handing over in it, which goes: so much as each hand-over that was done away with has
saved so far. It is joined if that is shorter than now, or leaves a tenth of the bound; and since a change has
its price, after AGREE intervals that want the same, while replicas stay as they are, and not where the flow
stands still for it (price.py). It is taken apart at once where it is full, or where it is above LIMIT and a
bound through it is broken: not before, so the two do not follow each other.
"""

import itertools
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

import msgspec

from penstock.policy.chaining import chain_tasks
from penstock.policy.decision import Reason
from penstock.policy.measured import (
    finite,
    largest_utilization,
    queue_wait_ms,
    sequence_latency_ms,
    utilization,
)
from penstock.policy.penstock.counted import Counted
from penstock.policy.penstock.waiting import kingman_ms
from penstock.policy.scaling_chains import as_served
from penstock.stats.snapshot import ConstraintSpec, Snapshot

RULE = "chain"
_LIMIT, _FULL = 0.9, 0.97
_OF_BOUND = 0.9
_AGREE = 2

Chains = list[list[str]]


@dataclass(frozen=True, slots=True)
class Wish:
    """Chains that were wanted in so many intervals one after the other.

    `works` are the seconds of work for an item of the sources, by how many hand-overs were inside chains.
    """

    chains: Chains
    intervals: int = 0
    works: Mapping[int, float] = field(default_factory=dict)

    def then(self, chains: Chains) -> "Wish":
        """In one more."""
        return replace(self, chains=chains, intervals=self.intervals + 1 if chains == self.chains else 1)

    def seen(self, snapshot: Snapshot) -> "Wish":
        """With the work of one more interval."""
        items = _items_per_s(snapshot) * snapshot.interval_s
        work_s = 0.0
        for task in snapshot.tasks.values():
            load = utilization(task)
            if task.kind == "task" and load is None:
                return self
            work_s += (load or 0.0) * task.parallelism * snapshot.interval_s * (task.kind == "task")
        return replace(self, works={**self.works, _pairs(snapshot.chains): work_s / items}) if items else self

    def saved_s(self, pairs: int) -> float:
        """By each hand-over that is inside now."""
        fewest = min(self.works, default=pairs)
        if fewest >= pairs or pairs not in self.works:
            return 0.0
        return max(0.0, self.works[fewest] - self.works[pairs]) / (pairs - fewest)


@dataclass(frozen=True, slots=True)
class Chained:
    """The chains from now on, why, and what is remembered."""

    chains: Chains
    reasons: list[Reason]
    wish: Wish


def chained(
    snapshot: Snapshot, counts: Counted, before: Wish | None, *, grows: float, may_join: bool
) -> Chained:
    """`grows`: what is planned for over what came. `may_join`: a change that only saves is due."""
    now = snapshot.chains
    found = chain_tasks(snapshot, _LIMIT / max(1.0, grows))
    wish = (before or Wish(now)).then(found.chains).seen(snapshot)
    if found.chains == now:
        return Chained(now, [], wish)
    if _is_too_full(snapshot):
        return Chained(found.chains, _reasons(now, found.chains, "one process is too few for them"), wish)
    joins = _pairs(found.chains) > _pairs(now)
    if not (joins and may_join and wish.intervals >= _AGREE):
        return Chained(now, [], wish)
    saved_s = wish.saved_s(_pairs(now))
    joined = [chain for chain in found.chains if chain not in now]
    if not all(_is_kept(snapshot, counts, chain, grows, saved_s) for chain in joined):
        return Chained(now, [], wish)
    why = "hand-overs inside cost more than sharing a process, and every bound is kept so"
    return Chained(found.chains, _reasons(now, found.chains, why), wish)


def _is_too_full(snapshot: Snapshot) -> bool:
    """Whether a chain of now has too much to do."""
    for chain in snapshot.chains:
        loads = [largest_utilization(snapshot.tasks[name]) for name in chain if name in snapshot.tasks]
        load = math.fsum(one for one in loads if one is not None)
        broken = any(
            one.latency_ms < (sequence_latency_ms(snapshot, one) or 0.0)
            for one in snapshot.constraints
            if set(chain) & set(one.tasks())
        )
        if len(chain) > 1 and load > (_LIMIT if broken else _FULL):
            return True
    return False


def _is_kept(snapshot: Snapshot, counts: Counted, chain: Sequence[str], grows: float, saved_s: float) -> bool:
    """Whether all bounds through a new chain are, by prediction."""
    if len(chain) < 2:
        return True
    head = as_served(msgspec.structs.replace(snapshot, chains=[list(chain)])).tasks[chain[0]]
    inside = {(one, other) for one, other in itertools.pairwise(chain)}
    saved = [finite(one.latency_ms) for one in snapshot.streams if (one.sender, one.receiver) in inside]
    service_ms, load = finite(head.service_ms), finite(head.utilization)
    known = [ms for ms in saved if ms is not None]
    if service_ms is None or load is None or len(known) < len(inside):
        return False
    before = [pair for one in snapshot.chains for pair in itertools.pairwise(one)]
    new = len(inside - set(before))
    less = new * saved_s * _items_per_s(snapshot) / head.parallelism
    rho = max(1.0, grows) * max(0.0, load - less)
    if rho >= 1.0:
        return False
    service_ms *= max(0.0, 1.0 - less / load) if load > 0.0 else 1.0
    cv = finite(head.service_cv)
    wait_ms = kingman_ms(service_ms, rho, counts.arrival_cv2(chain[0]), 1.0 if cv is None else cv * cv)
    longer_ms = max(0.0, wait_ms - (queue_wait_ms(snapshot, chain[0]) or 0.0)) - math.fsum(known)
    return longer_ms <= 0.0 or all(
        _stays_within(snapshot, one, longer_ms)
        for one in snapshot.constraints
        if set(chain) & set(one.tasks())
    )


def _stays_within(snapshot: Snapshot, constraint: ConstraintSpec, longer_ms: float) -> bool:
    latency_ms = sequence_latency_ms(snapshot, constraint)
    return latency_ms is not None and latency_ms + longer_ms <= _OF_BOUND * constraint.latency_ms


def _items_per_s(snapshot: Snapshot) -> float:
    """Of all sources."""
    return math.fsum(task.rate_total or 0.0 for task in snapshot.tasks.values() if task.kind == "source")


def _pairs(chains: Chains) -> int:
    """Hand-overs inside chains."""
    return sum(len(chain) - 1 for chain in chains)


def _reasons(before: Chains, after: Chains, why: str) -> list[Reason]:
    return [
        Reason(rule=RULE, before=list(_written(before)), after=list(_written(after)), why=why),
    ]


def _written(chains: Chains) -> Iterator[str]:
    return ("+".join(chain) for chain in chains)
