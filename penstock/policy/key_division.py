"""A better division of key groups among replicas, with as few moves as it takes. Pure.

Who owns what is load balancing on identical machines: groups are jobs, and no division can have a most
loaded replica with less than

    lower = max( mean load of the replicas, load of the heaviest group )

since a group is never divided. Groups of replicas that go are dealt out the heaviest first, each to the
replica with the least (longest processing time first; Graham, "Bounds on multiprocessing timing anomalies",
1969). All others stay where they are, and are moved one by one from the most loaded replica H to the least
loaded one L (Finn and Horowitz, "A linear time approximation algorithm for multiprocessor scheduling", 1979):

    the heaviest group of H with w <= (H - L) / 2, else the lightest one, if w < H - L

so few are moved, and neither is ever above what H was. It ends when H <= (1 + tolerance) lower, or when no
group of H can go without making L as loaded. Then H is a single group, or

    H <= mean + lightest group of H

because no group of H is below H - L, and L <= mean.
"""

from bisect import bisect_right, insort
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

TOLERANCE: Final = 0.05
"""How far above the least possible the most loaded replica may stay, as a share: the last moves are many."""


@dataclass(frozen=True, slots=True)
class Divided:
    """The owner of each group, and what the most loaded replica has then; of all loads, those that move."""

    owners: list[int]
    most_loaded: float
    groups_moved: int
    load_moved: float


def loads_of(owners: Sequence[int], loads: Sequence[float], replicas: int) -> list[float]:
    """What each replica has to do."""
    sums = [0.0] * replicas
    for replica, load in zip(owners, loads, strict=True):
        sums[replica] += load
    return sums


def least_possible(loads: Sequence[float], replicas: int) -> float:
    """What the most loaded replica has at the least, however groups are divided."""
    return max(sum(loads) / replicas, max(loads, default=0.0))


def divide(
    owners: Sequence[int], loads: Sequence[float], replicas: int, *, tolerance: float = TOLERANCE
) -> Divided:
    """Groups with these loads among so many replicas; `owners` are those of now.

    >>> divide([0, 0, 0, 1], [5, 2, 1, 1], 2).owners
    [0, 1, 1, 1]
    """
    chosen = list(owners)
    sums = loads_of([min(replica, replicas) for replica in owners], loads, replicas + 1)[:replicas]
    _deal_out(chosen, loads, sums)
    _even_out(chosen, loads, sums, (1 + tolerance) * least_possible(loads, replicas))
    _in_rows(owners, chosen, loads)
    moved = [load for before, after, load in zip(owners, chosen, loads, strict=True) if before != after]
    return Divided(chosen, max(loads_of(chosen, loads, replicas)), len(moved), sum(moved))


def _deal_out(owners: list[int], loads: Sequence[float], sums: list[float]) -> None:
    """Groups whose replica goes, the heaviest first."""
    left = [group for group, replica in enumerate(owners) if replica >= len(sums)]
    owned = [owners.count(replica) for replica in range(len(sums))]
    for group in sorted(left, key=lambda one: (-loads[one], one)):
        taker = min(range(len(sums)), key=lambda replica: (sums[replica], owned[replica], replica))
        owners[group] = taker
        sums[taker] += loads[group]
        owned[taker] += 1


def _even_out(owners: list[int], loads: Sequence[float], sums: list[float], goal: float) -> None:
    """Move groups from the most loaded replica to the least loaded one; those without load stay."""
    groups: list[list[tuple[float, int]]] = [[] for _ in sums]
    for group, replica in enumerate(owners):
        if loads[group] > 0:
            groups[replica].append((loads[group], group))
    for each in groups:
        each.sort()
    numbers = range(len(sums))
    while True:
        most = max(numbers, key=lambda replica: (sums[replica], -replica))
        least = min(numbers, key=lambda replica: (sums[replica], replica))
        gap = sums[most] - sums[least]
        if sums[most] <= goal or not groups[most]:
            return
        place = max(0, bisect_right(groups[most], (gap / 2, len(owners))) - 1)
        load, group = groups[most][place]
        if sums[least] + load >= sums[most]:
            return
        del groups[most][place]
        insort(groups[least], (load, group))
        owners[group] = least
        sums[most] -= load
        sums[least] += load


def _in_rows(before: Sequence[int], owners: list[int], loads: Sequence[float]) -> None:
    """Let groups with the same load that leave the same replica go to others in rows, so tables are short."""
    alike: dict[tuple[int, float], list[int]] = {}
    for group, (giver, taker) in enumerate(zip(before, owners, strict=True)):
        if giver != taker:
            alike.setdefault((giver, loads[group]), []).append(group)
    for moved in alike.values():
        for group, taker in zip(moved, sorted(owners[group] for group in moved), strict=True):
            owners[group] = taker
