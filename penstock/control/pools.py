"""How many replicas of a task are kept ready: the pool, from which replicas are activated without a boundary.

A pool grows when more replicas are needed than it holds, at once and to twice its size if there is room: the
boundary it takes costs the same for one replica as for many.

    size' = min(most, max(need, 2 size))                                    if need > size

It shrinks when it was far too large for a long time, to twice the largest need of that time, and never below
what was asked for, `elastic(..., pool=)`; 8 where nobody asked:

    size' = min(most, max(least, 2 peak)),  peak = max need of the last shrink_after_s   if size' <= size / 2

When slots are short, pools that grow get what they need before anybody gets room, and idle replicas of other
pools make place. What does not fit even so is not granted.

A source keeps no replicas ready, since each reads its own splits: its pool is as large as its need, at once.
"""

from collections import deque
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from penstock.flow.layers import Layout
from penstock.flow.parallelism import SMALLEST_DEFAULT_POOL


@dataclass(frozen=True, slots=True)
class Pool:
    """The pool of a task, and of those that forward streams keep abreast of it.

    `most` is the largest it may become, `least` the smallest; each of its replicas takes `slots_each` slots.
    `spares` says whether it holds replicas beyond the need.
    """

    task: str
    size: int
    most: int
    slots_each: int = 1
    spares: bool = True
    least: int = SMALLEST_DEFAULT_POOL


@dataclass(frozen=True, slots=True)
class PoolPlan:
    """The pools to resize, and how many replicas of each task are granted."""

    sizes: dict[str, int]
    granted: dict[str, int]


def pools_of(layout: Layout) -> list[Pool]:
    """The pools that may be resized, one for all tasks that forward streams keep abreast."""
    found: dict[tuple[str, ...], Pool] = {}
    for task in layout.graph.tasks:
        together = layout.abreast_of(task.name)
        if together in found or not task.parallelism.elastic:
            continue
        units = {layout.unit_of(name) for name in together}
        asked = [layout.graph.task(name).parallelism for name in together]
        most = min(one.max for one in asked)
        least = max(SMALLEST_DEFAULT_POOL if "pool" in one.defaults else one.pool for one in asked)
        size, spares = layout.unit_of(task.name).pool, task.kind != "source"
        found[together] = Pool(task.name, size, most, len(units), spares, least)
    return list(found.values())


class PoolKeeper:
    """Plans the pools of one flow; remembers how much of them was needed lately."""

    def __init__(self, shrink_after_s: float) -> None:
        self._shrink_after_s = shrink_after_s
        self._needs: dict[str, deque[tuple[float, int]]] = {}

    def plan(self, now_s: float, pools: Sequence[Pool], needs: Mapping[str, int], spare: int) -> PoolPlan:
        """What to do for these needs (replicas by task); `spare` is how many slots nobody holds."""
        grown = grow(pools, needs, spare)
        roomy = [pool for pool in pools if pool.spares]
        if grown.sizes:
            for pool in roomy:
                self._note(now_s, pool, needs[pool.task])
            return grown
        sizes = {
            pool.task: smaller
            for pool in roomy
            if (smaller := self._shrunk(pool, self._note(now_s, pool, needs[pool.task]))) < pool.size
        }
        for task in sizes:
            del self._needs[task]
        return PoolPlan(sizes, grown.granted)

    def _note(self, now_s: float, pool: Pool, need: int) -> int | None:
        """The largest need of the time that counts; None as long as less than that time was seen."""
        seen = self._needs.setdefault(pool.task, deque())
        seen.append((now_s, need))
        full = now_s - seen[0][0] >= self._shrink_after_s
        while now_s - seen[0][0] > self._shrink_after_s:
            seen.popleft()
        return max(count for _, count in seen) if full else None

    def _shrunk(self, pool: Pool, peak: int | None) -> int:
        if peak is None:
            return pool.size
        near_need = min(pool.most, max(pool.least, 2 * peak))
        return near_need if 2 * near_need <= pool.size else pool.size


def grow(pools: Sequence[Pool], needs: Mapping[str, int], spare: int) -> PoolPlan:
    """The pools that are too small made larger, as far as slots go."""
    short = [pool for pool in pools if needs[pool.task] > pool.size]
    unasked = {pool.task: min(pool.size, needs[pool.task]) for pool in pools if not pool.spares}
    sizes = {pool.task: pool.size for pool in pools} | unasked
    spare += sum(pool.slots_each * (pool.size - sizes[pool.task]) for pool in pools)
    missing = sum(pool.slots_each * (needs[pool.task] - pool.size) for pool in short)
    for pool in sorted(pools, key=lambda one: needs[one.task] - one.size):
        while missing > spare and sizes[pool.task] > needs[pool.task]:
            sizes[pool.task] -= 1
            spare += pool.slots_each
    for wanted in (
        {pool.task: min(pool.most, needs[pool.task]) for pool in short},
        {
            pool.task: min(pool.most, max(needs[pool.task], 2 * pool.size if pool.spares else 0))
            for pool in short
        },
    ):
        spare = _fill(short, sizes, wanted, spare)
    if not any(sizes[pool.task] > pool.size for pool in short):
        # Nothing to be had: a boundary would be for nothing, unless a source shrinks.
        sizes = {pool.task: pool.size for pool in pools} | unasked
    changed = {pool.task: sizes[pool.task] for pool in pools if sizes[pool.task] != pool.size}
    return PoolPlan(changed, {task: min(needs[task], size) for task, size in sizes.items()})


def _fill(pools: Sequence[Pool], sizes: dict[str, int], wanted: Mapping[str, int], spare: int) -> int:
    """One replica after the other, round the pools, until all have what they want or no slot is left."""
    waiting = [pool for pool in pools if sizes[pool.task] < wanted[pool.task]]
    while waiting:
        for pool in waiting:
            if pool.slots_each <= spare:
                sizes[pool.task] += 1
                spare -= pool.slots_each
        waiting = [
            pool for pool in waiting if sizes[pool.task] < wanted[pool.task] and pool.slots_each <= spare
        ]
    return spare
