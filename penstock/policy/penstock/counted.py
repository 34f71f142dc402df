"""What items cost and become, over some intervals, so that one of them does not decide alone.

    ratio = sum over intervals k ago of LONG^k above_k / sum of LONG^k below_k

A ratio of sums, so intervals count by what was done in them: useful seconds over items is the service time,
items of a stream over items that its sender has done is what becomes of one. A broadcast counts once, however
many get it: more replicas get more of it, and its luck is that of the few items that were sent. When an
interval differs from those before by more than luck, they are forgotten: the work has changed, not its
measurement. The same with KEPT in place of LONG tells of slow changes: where that differs by more than luck,
it takes the place. How much service times vary is told by items that come seldom, so that is remembered
longest (SELDOM).
"""

import math
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field

from penstock.policy.measured import finite
from penstock.stats.snapshot import Snapshot, StreamStats, TaskStats

LONG, KEPT = 0.95, 0.8
_SELDOM = 0.99
LUCK = 4.0
_ALIKE = 0.03
_SLOWLY = 0.6
"""Of the luck of an interval: forgetting too much does little harm."""


@dataclass(frozen=True, slots=True)
class Ratio:
    """So much above for so much below, in so many intervals; the last three are of the shorter memory."""

    above: float = 0.0
    below: float = 0.0
    intervals: float = 0.0
    lately_above: float = 0.0
    lately_below: float = 0.0
    lately: float = 0.0

    @property
    def value(self) -> float | None:
        """None as long as nothing is below."""
        return self.above / self.below if self.below > 0.0 else None

    @property
    def below_each(self) -> float:
        """In an interval."""
        return self.below / self.intervals if self.intervals else 0.0

    def then(self, above: float | None, below: float | None, luck: float) -> "Ratio":
        """With one more interval; `luck` is by how much its ratio may differ for nothing."""
        if above is None or not below:
            return self
        before, now = self.value, above / below
        if before is None or abs(now - before) > luck + _ALIKE * before:
            return Ratio(above, below, 1.0, above, below, 1.0)
        lately = (
            KEPT * self.lately_above + above,
            KEPT * self.lately_below + below,
            KEPT * self.lately + 1.0,
        )
        value = lately[0] / lately[1]
        if abs(value - before) > _SLOWLY * luck / math.sqrt(lately[2]):
            return Ratio(*lately, *lately)
        return Ratio(
            LONG * self.above + above, LONG * self.below + below, LONG * self.intervals + 1.0, *lately
        )


@dataclass(frozen=True, slots=True)
class Varies:
    """A squared coefficient of variation, over so many items, with replicas and lifetimes as in `made_by`."""

    cv2: float = 1.0
    items: float = 0.0
    made_by: tuple[float, ...] = ()

    def then(self, cv: float | None, items: float | None, kept: float) -> "Varies":
        """With one more interval."""
        if cv is None or not items:
            return self
        before = kept * self.items
        return Varies((before * self.cv2 + items * cv * cv) / (before + items), before + items, self.made_by)

    def only_by(self, made_by: tuple[float, ...]) -> "Varies":
        """As it is, or anew where something else made it."""
        return self if made_by == self.made_by else Varies(self.cv2, 0.0, made_by)


@dataclass(frozen=True, slots=True)
class Counted:
    """By task: seconds for an item, and how much that and the arrivals vary; by stream: items for one, or
    broadcasts for one."""

    costs: Mapping[str, Ratio] = field(default_factory=dict)
    becomes: Mapping[str, Ratio] = field(default_factory=dict)
    services: Mapping[str, Varies] = field(default_factory=dict)
    arrivals: Mapping[str, Varies] = field(default_factory=dict)

    def service_s(self, task: str) -> float | None:
        """Useful seconds for an item; None as long as nothing was done."""
        return self.costs.get(task, Ratio()).value

    def service_cv2(self, task: str) -> float:
        """Squared coefficient of variation of the service time; 1 where it is unknown."""
        return self.services.get(task, Varies()).cv2

    def arrival_cv2(self, task: str) -> float:
        """The same of the time between arrivals at a replica, with the replicas of now."""
        return self.arrivals.get(task, Varies()).cv2

    def ratio(self, snapshot: Snapshot, stream: StreamStats) -> float | None:
        """Items of a stream for each that its sender has done; of a source that nobody counted, one."""
        known = self.becomes.get(stream.name, Ratio()).value
        if known is None:
            known = 1.0 if snapshot.tasks[stream.sender].kind == "source" else None
        return None if known is None else known * copies(snapshot, stream)


def counted(before: Counted, snapshot: Snapshot, unsettled: Collection[str] = ()) -> Counted:
    """With one more interval. What it lacks stays as it was, and so do the arrivals of `unsettled` tasks."""
    tasks = snapshot.tasks
    services = {
        name: before.services.get(name, Varies()).then(
            finite(task.service_cv), finite(task.processed_total), _SELDOM
        )
        for name, task in tasks.items()
    }
    return Counted(
        costs={
            name: _cost(before.costs.get(name, Ratio()), task, services[name].cv2)
            for name, task in tasks.items()
        },
        becomes={
            one.name: _becomes(before.becomes.get(one.name, Ratio()), snapshot, one)
            for one in snapshot.streams
        },
        services=services,
        arrivals={
            name: _arrivals(
                before.arrivals.get(name, Varies()), snapshot, name, settled=name not in unsettled
            )
            for name, task in tasks.items()
        },
    )


def _cost(before: Ratio, task: TaskStats, cv2: float) -> Ratio:
    done, useful_s = finite(task.processed_total), _useful_s(task)
    if not done or useful_s is None:
        return before
    return before.then(useful_s, done, LUCK * useful_s / done * math.sqrt(max(cv2, 0.01) / done))


def copies(snapshot: Snapshot, stream: StreamStats) -> int:
    """How many receive an item."""
    return snapshot.tasks[stream.receiver].parallelism if stream.wiring == "broadcast" else 1


def _becomes(before: Ratio, snapshot: Snapshot, stream: StreamStats) -> Ratio:
    """A stream that nobody counts carries all that its sender sends."""
    sender = snapshot.tasks[stream.sender]
    items, done = finite(stream.emitted_total), finite(sender.processed_total)
    if items is None:
        items = finite(sender.emitted_total)
    if not items or not done:
        return before.then(items, done, 0.0)
    sent = items / copies(snapshot, stream)
    return before.then(sent, done, LUCK * math.sqrt(sent) / done)


def _arrivals(before: Varies, snapshot: Snapshot, name: str, *, settled: bool) -> Varies:
    task = snapshot.tasks[name]
    lifetimes_ms = (one.batch_lifetime_ms or 0.0 for one in snapshot.streams_into(name))
    known = before.only_by((float(task.parallelism), *lifetimes_ms))
    if not settled:
        return known
    return known.then(finite(task.interarrival_cv), finite(task.processed_total), KEPT)


def _useful_s(task: TaskStats) -> float | None:
    """Of all replicas; where it is not measured, the time that they were busy with items."""
    useful_s, service_ms, done = map(finite, (task.useful_s, task.service_ms, task.processed_total))
    if useful_s is not None:
        return useful_s * task.parallelism
    return None if service_ms is None or done is None else service_ms / 1000.0 * done
