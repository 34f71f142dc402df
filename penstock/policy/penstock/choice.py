"""The fewest replicas that keep every constraint.

    minimise sum of p_i   so that for each constraint c
    fixed_c + t_c (m_c sum of W_i(p_i) + z sqrt(sum of (W_i v_i)^2)) <= bound_c       i over the queues of c

m is the margin of the waits, z the normal quantile of the share times how much luck there is (luck.py), t
that of a percentile (tails.py). Margin and luck are learnt apart, so that one odd interval is not paid for
twice. It begins with the fewest replicas that do the work and drain what is left over, and gives one more
where that shortens the worst constraint most. Waits fall ever more slowly, so the best single steps are the
best in total. At last, what one constraint made superfluous for another is taken back.
"""

import math
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from types import MappingProxyType

from penstock.policy.penstock.waiting import Wait

_FULL = 0.97
_NO_LIMIT = 100_000
_NONE: Mapping[str, int] = MappingProxyType({})
_HARDLY = 0.01
"""Of the bound: what a step must gain to be worth it."""


@dataclass(frozen=True, slots=True)
class Queue:
    """A task with its limits; `least` are the replicas that drain its backlog. One that is fixed has one."""

    wait: Wait
    least: int
    most: int | None
    _known: dict[int, tuple[float, float]] = field(default_factory=dict, compare=False, repr=False)

    def wait_ms(self, replicas: int) -> tuple[float, float]:
        """W and its luck, calculated once."""
        if replicas not in self._known:
            self._known[replicas] = self.wait.wait_ms(replicas)
        return self._known[replicas]

    @property
    def highest(self) -> int:
        return _NO_LIMIT if self.most is None else self.most


@dataclass(frozen=True, slots=True)
class Bound:
    """A constraint: what takes its time anyway, the queues it goes through, and what is allowed."""

    name: str
    fixed_ms: float
    queues: tuple[str, ...]
    bound_ms: float
    factor: float
    sigmas: float
    margin: float = 1.0


@dataclass(slots=True)
class Choice:
    """The replicas, what each constraint will take with them, and those that cannot be kept."""

    replicas: dict[str, int]
    predicted_ms: dict[str, float] = field(default_factory=dict)
    infeasible: dict[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class _Ahead:
    """So many replicas more, and by how much that shortens waits and the squares of their luck."""

    step: int
    wait_ms: float
    luck2: float


class _Search:
    def __init__(self, queues: Mapping[str, Queue], replicas: dict[str, int]) -> None:
        self.queues, self.replicas = queues, replicas
        self._least = dict(replicas)

    def wait(self, name: str, replicas: int) -> tuple[float, float]:
        return self.queues[name].wait_ms(replicas)

    def sums(self, bound: Bound) -> tuple[float, float]:
        """Of the waits of a constraint, and of the squares of their luck."""
        return self._sums(bound.queues)

    def _sums(self, names: Iterable[str]) -> tuple[float, float]:
        waits = [self.wait(name, self.replicas[name]) for name in names]
        return math.fsum(wait for wait, _ in waits), math.fsum(luck * luck for _, luck in waits)

    def latency_ms(self, bound: Bound) -> float:
        """With the replicas of now."""
        return _latency_ms(bound, *self.sums(bound))

    def latency_with_ms(self, bound: Bound, sums: tuple[float, float], name: str, count: int) -> float:
        """With another number of replicas of one task."""
        (wait, luck), (other, other_luck) = self.wait(name, self.replicas[name]), self.wait(name, count)
        if math.inf in (wait, other):
            before, self.replicas[name] = self.replicas[name], count
            latency_ms = self.latency_ms(bound)
            self.replicas[name] = before
            return latency_ms
        return _latency_ms(bound, sums[0] - wait + other, sums[1] - luck * luck + other_luck * other_luck)

    def hold(self, bound: Bound) -> bool:
        """Add replicas until the bound is kept; whether it could be.

        Queues that cannot do their work with all they may have are left out: others need no more for them.
        """
        times = Counter(name for name in bound.queues if self.wait(name, self.replicas[name])[0] < math.inf)
        wait_ms, luck2 = self._sums(times.elements())
        steps = {name: self._ahead(name, many) for name, many in times.items()}
        least_ms = _HARDLY * bound.bound_ms / bound.factor
        while _latency_ms(bound, wait_ms, luck2) > bound.bound_ms:
            best, most, luck_ms = None, 0.0, math.sqrt(luck2)
            for name, one in steps.items():
                gain_ms = bound.margin * one.wait_ms + bound.sigmas * (
                    luck_ms - math.sqrt(max(0.0, luck2 - one.luck2))
                )
                if gain_ms > least_ms and gain_ms / one.step > most:
                    best, most = name, gain_ms / one.step
            if best is None:
                return False
            wait_ms, luck2 = wait_ms - steps[best].wait_ms, max(0.0, luck2 - steps[best].luck2)
            self.replicas[best] += steps[best].step
            steps[best] = self._ahead(best, times[best])
        return times.total() == len(bound.queues)

    def _ahead(self, name: str, times: int) -> "_Ahead":
        """What the next step of a task takes away from a constraint that goes so many times through it."""
        count, step = self.replicas[name], self._step(name)
        (wait_ms, luck_ms), (then_ms, then_luck_ms) = self.wait(name, count), self.wait(name, count + step)
        return _Ahead(
            step, times * (wait_ms - then_ms), times * (luck_ms * luck_ms - then_luck_ms * then_luck_ms)
        )

    def _step(self, name: str) -> int:
        return min(_step(self.replicas[name]), self.queues[name].highest - self.replicas[name])

    def trim(self, kept: Sequence[Bound]) -> None:
        """Take back what no bound needs, the largest numbers first."""
        known = [self.sums(bound) for bound in kept]
        for name in sorted(self.replicas, key=lambda one: -self.replicas[one]):
            through = [number for number, bound in enumerate(kept) if name in bound.queues]
            mine = [(kept[number], known[number]) for number in through]
            count, least = self.replicas[name], self._least[name]
            step = _step(count)
            while step:
                fewer = count - step
                if fewer >= least and all(
                    self.latency_with_ms(bound, sums, name, fewer) <= bound.bound_ms for bound, sums in mine
                ):
                    count = fewer
                else:
                    step //= 2
            if count != self.replicas[name]:
                self.replicas[name] = count
                for number in through:
                    known[number] = self.sums(kept[number])


def _latency_ms(bound: Bound, wait_ms: float, luck_squares: float) -> float:
    if wait_ms == math.inf:
        return math.inf
    luck_ms = bound.sigmas * math.sqrt(max(0.0, luck_squares))
    return bound.fixed_ms + bound.factor * (bound.margin * wait_ms + luck_ms)


def choose(queues: Mapping[str, Queue], bounds: Sequence[Bound], least: Mapping[str, int] = _NONE) -> Choice:
    """The replicas of each queue, not below `least`."""
    search = _Search(queues, {name: max(_start(queue), least.get(name, 1)) for name, queue in queues.items()})
    held = [bound for bound in bounds if search.hold(bound)]
    if len(held) == len(bounds):
        search.trim(held)
    choice = Choice(search.replicas)
    for bound in bounds:
        choice.predicted_ms[bound.name] = search.latency_ms(bound)
        if bound not in held:
            choice.infeasible[bound.name] = _needed(search, bound)
    return choice


def keeps(queues: Mapping[str, Queue], bounds: Sequence[Bound], replicas: Mapping[str, int]) -> bool:
    """Whether so many do the work, drain what is left over, and keep every bound."""
    if any(replicas[name] < _start(queue) for name, queue in queues.items()):
        return False
    search = _Search(queues, {name: replicas[name] for name in queues})
    return all(search.latency_ms(bound) <= bound.bound_ms for bound in bounds)


def _start(queue: Queue) -> int:
    """Enough to do the work, and what is least."""
    work = queue.wait
    busy = work.busy(work.now)
    alone = _FULL - work.copied * busy / work.now
    if alone <= 0.0:  # what is broadcast fills each, however many there are
        return min(queue.highest, max(work.now, queue.least))
    count = max(1, math.ceil((1.0 - work.copied) * busy / alone * (1.0 - 1e-9)))
    while work.exponent and work.busy(count) > _FULL * count and count < queue.highest:
        count += _step(count)
    return min(queue.highest, max(count, queue.least))


def _step(count: int) -> int:
    return max(1, count // 20)


def _needed(search: _Search, bound: Bound) -> str:
    """What would keep it."""
    full = [
        name
        for name in bound.queues
        if search.replicas[name] >= search.queues[name].highest
        and search.wait(name, search.replicas[name])[0] > 0.1 * bound.bound_ms
    ]
    if full:
        return "it would need more replicas of " + " and ".join(dict.fromkeys(full))
    latency_ms = search.latency_ms(bound)
    return f"replicas do not help: a bound of {latency_ms:.3g} ms could be kept"
