"""One interval with perfect foresight: the same moment is tried again with other replicas until it is held.

Every attempt is a copy of the simulated engine with the same luck to come. Replicas are there at once, for
who knows what comes orders them in time.

Where the window of a constraint covers several intervals, one of them can be held on the credit of those
before, and what it spends may break those that follow, whatever they are given. So where the cheapest way
does that, one that is within the bound by itself is followed as well.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

from penstock.arena.descent import Vector, cheapest, with_replicas
from penstock.arena.moments import Moment, moment_of, owed
from penstock.policy.measured import sequence_latency_ms

if TYPE_CHECKING:
    from collections.abc import Iterator

    from penstock.sim.engine import SimulatedEngine
    from penstock.sim.model import FlowModel
    from penstock.stats.snapshot import Snapshot, TaskStats

# Work that is put off makes a queue: by the end of an interval of T seconds at a utilisation of u > 1 items
# wait (u - 1) T, and half of that in the mean, so no bound is kept with u above 1 + 2 bound / T. Twice that,
# and a bit for luck, is never worth an attempt.
_LUCK = 0.05
_DEBT = 0.5
_CROWDED = 0.8
_AS_GOOD = 1.02
_FEW_ITEMS = 2.0


@dataclass(frozen=True, slots=True)
class Past:
    """The intervals so far, the last one first."""

    moment: Moment
    before: Past | None

    def moments(self) -> list[Moment]:
        """In the order of time."""
        return list(reversed(list(self._backwards())))

    def _backwards(self) -> Iterator[Moment]:
        past: Past | None = self
        while past is not None:
            yield past.moment
            past = past.before


@dataclass(frozen=True, slots=True)
class Path:
    """A way through the first intervals: how many were held, at what cost, and what waits at its end."""

    engine: SimulatedEngine
    vector: Vector
    past: Past | None = None
    held: int = 0
    cost_s: float = 0.0
    waiting: float = 0.0
    overspent: bool = False
    spent: float = 0.0
    """Of windows that cover several intervals: whether its last interval took more than the bound by itself,
    and the mean over the window as a share of the bound."""

    @property
    def is_sound(self) -> bool:
        """Whether its last interval is held, and not on the credit of others."""
        return self.holds and not self.overspent

    @property
    def holds(self) -> bool:
        """Whether its last interval is held."""
        return self.past is not None and self.past.moment.held

    def wait_left_ms(self, task: str) -> float:
        """How long what is in the queues of a task takes from here."""
        return 0.0 if self.engine.last is None else _queued_ms(self.engine.last.snapshot.tasks[task])


class NextInterval:
    """The interval after a path, tried as often as needed, each vector once."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._flow = path.engine.flow
        self._tasks = [task for task in self._flow.tasks if task.elastic]
        self._highest = tuple(task.bounds[1] for task in self._tasks)
        self._crowded = may_be_crowded(self._flow)
        self._tried: dict[Vector, Path] = {}

    @property
    def attempts(self) -> int:
        return len(self._tried)

    def ways(self, guess: Vector) -> list[Path]:
        """The cheapest way on, and one with a replica more for each task that it leaves with a longer queue.

        A queue may be left to the next interval, which then may need more than was saved.
        """
        risen = self._risen(self._attempt(guess))
        best = self._cheapest(risen)
        bound_ms = max((c.latency_ms for c in self._flow.constraints), default=0.0)
        found = [best]
        if best.holds and best.overspent:
            found += self._sound(risen)
        for number, task in enumerate(self._tasks):
            left_ms = best.wait_left_ms(task.name)
            indebted = left_ms > _DEBT * bound_ms and left_ms > self._path.wait_left_ms(task.name)
            if best.holds and indebted and best.vector[number] < self._highest[number]:
                found.append(self._attempt(with_replicas(best.vector, number, best.vector[number] + 1)))
        return found

    def _sound(self, tried: Path) -> list[Path]:
        """The cheapest way that is held by itself, if there is one."""
        while not tried.is_sound and (task := self._most_painful(tried)) is not None:
            tried = self._attempt(self._with_more(tried, task))
        if not tried.is_sound:
            return []
        return [
            cheapest(
                tried,
                self._attempt,
                good=lambda other: other.is_sound,
                lowest=self._lowest,
                highest=self._highest,
            )
        ]

    def _attempt(self, vector: Vector) -> Path:
        if vector not in self._tried:
            self._tried[vector] = _went_on(self._path, vector, [task.name for task in self._tasks])
        return self._tried[vector]

    def _risen(self, tried: Path) -> Path:
        """More and more replicas where items wait longest, until the interval is held or nothing helps."""
        while not tried.holds and (task := self._most_painful(tried)) is not None:
            tried = self._attempt(self._with_more(tried, task))
        if tried.holds:
            return tried
        most = self._attempt(self._highest)
        return most if most.holds or most.waiting < tried.waiting else tried

    def _with_more(self, tried: Path, task: int) -> Vector:
        now = tried.vector[task]
        return with_replicas(tried.vector, task, min(self._highest[task], now + max(1, now // 2)))

    def _most_painful(self, tried: Path) -> int | None:
        assert tried.engine.last is not None
        stats = tried.engine.last.snapshot.tasks
        pain = {
            number: (stats[task.name].queue_wait_ms or 0.0) + _queued_ms(stats[task.name])
            for number, task in enumerate(self._tasks)
            if tried.vector[number] < self._highest[number]
        }
        worst = max(pain, key=lambda number: pain[number], default=None)
        return worst if worst is not None and pain[worst] > 0.0 else None

    def _cheapest(self, tried: Path) -> Path:
        """What nobody can hold is at least left as short a queue as anybody could leave."""
        shortest = _AS_GOOD * tried.waiting + _FEW_ITEMS

        def as_good(other: Path) -> bool:
            return other.holds if tried.holds else other.waiting <= shortest

        return cheapest(tried, self._attempt, good=as_good, lowest=self._lowest, highest=self._highest)

    def _lowest(self, tried: Path) -> Vector:
        crowded = self._crowded and self._cores_are_busy(tried)
        return tuple(
            max(task.bounds[0], 0 if crowded else self._needed(tried, task.name)) for task in self._tasks
        )

    def _cores_are_busy(self, tried: Path) -> bool:
        """All cores in use together would nearly fill one worker: it may be one that is full."""
        assert tried.engine.last is not None
        used = tried.engine.last.snapshot.cores_used or 0.0
        return used > _CROWDED * self._flow.cluster.cores_per_worker

    def _needed(self, tried: Path, task: str) -> int:
        assert tried.engine.last is not None
        stats = tried.engine.last.snapshot.tasks[task]
        longest_ms = max((c.latency_ms for c in self._flow.constraints), default=math.inf)
        most = 1.0 + _LUCK + 4.0 * longest_ms / 1000.0 / self._flow.interval_s
        return math.ceil((stats.utilization or 0.0) * stats.parallelism / most)


def may_be_crowded(flow: FlowModel) -> bool:
    """Whether replicas may have to share cores: then busy time says little about how many are needed."""
    cores = flow.cluster.cores_per_worker * flow.cluster.threads_per_core
    sites = {task.site for task in flow.tasks}
    return any(sum(task.per_worker for task in flow.tasks if task.site == site) > cores for site in sites)


def _went_on(path: Path, vector: Vector, names: list[str]) -> Path:
    engine = path.engine.fork()
    engine.place(dict(zip(names, vector, strict=True)))
    engine.observe()
    assert engine.last is not None
    moment = moment_of(engine.last)
    spent = _spent(engine.last.snapshot)
    return Path(
        engine=engine,
        vector=vector,
        past=Past(moment, path.past),
        held=path.held + moment.held,
        cost_s=path.cost_s + sum(vector) * moment.length_s,
        waiting=engine.items_inside + owed(engine.last),
        overspent=any(own > 1.0 for own, _ in spent),
        spent=max((mean for _, mean in spent), default=0.0),
    )


def _spent(snapshot: Snapshot) -> list[tuple[float, float]]:
    """Of constraints over several intervals: what this one took and their mean, as shares of the bound."""
    return [
        (
            (sequence_latency_ms(snapshot, one) or 0.0) / one.latency_ms,
            (one.mean_ms or 0.0) / one.latency_ms,
        )
        for one in snapshot.constraints
        if one.window_s is not None and one.window_s > snapshot.interval_s
    ]


def _queued_ms(stats: TaskStats) -> float:
    return (stats.backlog_total or 0.0) * (stats.service_ms or 0.0) / stats.parallelism
