"""Dynamic task chaining: which neighbouring tasks run in one process.

Thesis, section 4.7. A chain is a constrained path whose tasks have no other streams inside it, joined one to
one, on the same worker, with equal parallelism; a task may forbid it. Every constrained task has one longest,
its primary chain.
Algorithm 10 splits a primary chain into as few chains as possible such that

    util(chain) = sum of rho_max of its tasks <= rho_max                                     (4.13, 4.14)
    utilVar(split) <= utilVar(every task alone)      the variance of util over the chains    (4.15)

The thesis asks for a strictly smaller variance, which would never chain tasks of equal load; equal will do.
"""

import itertools
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from penstock.policy.decision import Reason
from penstock.policy.measured import finite, largest_utilization, sequence_latency_ms
from penstock.stats.snapshot import Snapshot

Chain = tuple[str, ...]

# Variances that differ by rounding alone count as equal.
ROUNDING = 1e-12


@dataclass(frozen=True, slots=True)
class Chaining:
    """All chains after the change, and the reasons for those that differ."""

    chains: list[list[str]]
    reasons: list[Reason]


class Unsplit(NamedTuple):
    """A primary chain that stays as it is, and the rule that says so."""

    rule: str
    why: str


def chain_tasks(snapshot: Snapshot, utilization_max: float) -> Chaining:
    """Algorithm 9: the best split of every primary chain; what was not measured stays as it is."""

    def split(primary: Chain) -> list[Chain] | Unsplit:
        loads = {name: largest_utilization(snapshot.tasks[name]) for name in primary}
        known = {name: load for name, load in loads.items() if load is not None}
        if len(known) < len(primary):
            return _unknown(set(loads) - set(known), "utilization_max")
        return partition(primary, known, utilization_max)

    return _established(snapshot, split, rule="chain_tasks")


def chain_2012(snapshot: Snapshot, cpu_max: float) -> Chaining:
    """HPDC 2012, section 3.3.2: for a broken constraint, the longest series below `cpu_max` of a core.

    It only ever joins tasks that are alone.
    """
    broken = {
        name
        for constraint in snapshot.constraints
        if (sequence_latency_ms(snapshot, constraint) or 0.0) > constraint.latency_ms
        for name in constraint.tasks()
    }
    joined = {name for chain in snapshot.chains if len(chain) > 1 for name in chain}

    def split(primary: Chain) -> list[Chain] | Unsplit:
        if joined & set(primary):
            return Unsplit("chain_2012", "it is chained already")
        if not set(primary) & broken:
            return Unsplit("chain_2012", "no constraint on it is known to be broken")
        loads = {name: finite(snapshot.tasks[name].cpu) for name in primary}
        known = {name: load for name, load in loads.items() if load is not None}
        if len(known) < len(primary):
            return _unknown(set(loads) - set(known), "cpu")
        return longest_series(primary, known, cpu_max)

    return _established(snapshot, split, rule="chain_2012")


def primary_chains(snapshot: Snapshot) -> list[Chain]:
    """The primary chains of all constrained tasks, each once, in the order of the flow."""
    constrained = {name for constraint in snapshot.constraints for name in constraint.tasks()}
    following = {
        stream.sender: stream.receiver
        for stream in snapshot.streams
        if {stream.sender, stream.receiver} <= constrained
        and _one_to_one(snapshot, stream.sender, stream.receiver)
    }
    heads = [name for name in snapshot.tasks if name in constrained and name not in following.values()]
    chains = []
    for head in heads:
        chain = [head]
        while chain[-1] in following:
            chain.append(following[chain[-1]])
        chains.append(tuple(chain))
    return chains


def partition(primary: Chain, loads: Mapping[str, float], utilization_max: float) -> list[Chain]:
    """Algorithm 10: the first split with the fewest chains that is safe and no less even than none."""
    alone: list[Chain] = [(name,) for name in primary]
    evenness = _variance(alone, loads)
    for count in range(1, len(primary)):
        for chains in partitions(primary, count):
            safe = max(_load(chain, loads) for chain in chains) <= utilization_max
            if safe and _variance(chains, loads) <= evenness + ROUNDING:
                return chains
    return alone


def partitions(primary: Chain, count: int) -> Iterator[list[Chain]]:
    """Every way to cut `primary` into `count` chains: all choices of count - 1 places to cut."""
    for cuts in itertools.combinations(range(1, len(primary)), count - 1):
        ends = (0, *cuts, len(primary))
        yield [primary[begin:end] for begin, end in itertools.pairwise(ends)]


def longest_series(primary: Chain, loads: Mapping[str, float], limit: float) -> list[Chain]:
    """The 2012 rule: the longest run of tasks with a load below `limit` becomes a chain."""
    for length in range(len(primary), 1, -1):
        for begin in range(len(primary) - length + 1):
            run = primary[begin : begin + length]
            if _load(run, loads) < limit:
                return [*((n,) for n in primary[:begin]), run, *((n,) for n in primary[begin + length :])]
    return [(name,) for name in primary]


def _one_to_one(snapshot: Snapshot, sender: str, receiver: str) -> bool:
    first, second = snapshot.tasks[sender], snapshot.tasks[receiver]
    inputs, outputs = snapshot.streams_into(receiver), snapshot.streams_out_of(sender)
    same_worker = None in (first.worker, second.worker) or first.worker == second.worker
    return (
        first.kind == second.kind == "task"
        and first.chain
        and second.chain
        and len(inputs) == len(outputs) == 1
        and inputs[0].wiring == "forward"
        and first.parallelism == second.parallelism
        and same_worker
    )


def _established(snapshot: Snapshot, split: Callable[[Chain], list[Chain] | Unsplit], rule: str) -> Chaining:
    """The chains after every primary chain was split; chains of tasks without a constraint stay.

    A chain that joins tasks of two primary chains, say since one of them was scaled, comes apart.
    """
    primaries = primary_chains(snapshot)
    constrained = {name for primary in primaries for name in primary}
    listed = {name for chain in snapshot.chains for name in chain}
    chains = [chain for chain in snapshot.chains if not constrained & set(chain)]
    reasons = []
    for primary in primaries:
        now = _current(snapshot, primary)
        wanted = split(primary) if len(primary) > 1 else [primary]
        if isinstance(wanted, Unsplit):
            reasons.append(Reason(rule=wanted.rule, before=_written(now), why=f"{wanted.why}, so it stays"))
            wanted = now
        elif wanted != now:
            why = "as few processes as possible whose load stays below the limit"
            reasons.append(Reason(rule=rule, before=_written(now), after=_written(wanted), why=why))
        if len(primary) > 1 or primary[0] in listed:
            chains.extend(list(chain) for chain in wanted)
    return Chaining(chains, reasons)


def _current(snapshot: Snapshot, primary: Chain) -> list[Chain]:
    """How the tasks of `primary` are chained now; a task in no chain is alone."""
    joined = {pair for chain in snapshot.chains for pair in itertools.pairwise(chain)}
    chains: list[Chain] = [primary[:1]]
    for before, name in itertools.pairwise(primary):
        if (before, name) in joined:
            chains[-1] = (*chains[-1], name)
        else:
            chains.append((name,))
    return chains


def _unknown(missing: set[str], field: str) -> Unsplit:
    return Unsplit("unknown", f"{min(missing)}.{field} was not measured")


def _load(chain: Chain, loads: Mapping[str, float]) -> float:
    return sum(loads[name] for name in chain)


def _variance(chains: Sequence[Chain], loads: Mapping[str, float]) -> float:
    utils = [_load(chain, loads) for chain in chains]
    mean = sum(utils) / len(utils)
    return sum((util - mean) * (util - mean) for util in utils) / len(utils)


def _written(chains: Sequence[Chain]) -> list[str]:
    return ["+".join(chain) for chain in chains]
