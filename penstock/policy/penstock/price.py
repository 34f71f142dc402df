"""What a change takes and what it costs, as seen: the time until replicas are there, and the time the flow
stands still.

An order that is on its way is repeated until it has come, for in most engines another one begins anew.
While the flow stands still for P seconds nothing is held; so that no more than 1 - share of all time is
lost to changes that only save, these are P / (1 - share) apart. A pause that is shorter than an interval is
not seen as such, but an interval that is broken by a change that only saved is: P is then the mean of what
such changes have broken, the last one counting half. Taking replicas away follows the most that was wanted
over the time that it would take to have them back. A saving that had to be undone although no more came was
none: from then on twice as many intervals have to agree, until the load is another. Where the load is what
it was at the last change, only what is known of it can have become better, and there is no hurry: after the
first minutes that takes two more of them. What saves less than a tenth of the replicas of the flow is not
worth a change.
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass, field, replace

_GIVEN_UP_S = 90.0
_AGREE = 3
_REMEMBERED = 60
_AS_MUCH = 1.1
_MOST_PATIENCE = 16
_WORTH = 0.1
_SETTLED = 24
_FALLEN = 0.9


@dataclass(frozen=True, slots=True)
class Order:
    """Replicas that were asked for in place of those `before`, so many seconds ago."""

    replicas: Mapping[str, int]
    before: Mapping[str, int]
    age_s: float = 0.0

    @property
    def adds(self) -> bool:
        """Whether it is for more; fewer tell nothing of the time that replicas take to come."""
        return any(count > self.before.get(task, 0) for task, count in self.replicas.items())

    def has_come(self, now: Mapping[str, int]) -> bool:
        """Whether all that was to change has; a guard or an engine may have made less of it."""
        return all(
            now.get(task, count) != self.before.get(task)
            for task, count in self.replicas.items()
            if count != self.before.get(task)
        )


@dataclass(frozen=True, slots=True)
class Prices:
    """What is known of changes. `wishes` are the replicas that were enough, in the last intervals.

    `saved_at` is what was expected when replicas were last taken away, by source, `patience` how many
    times as long that takes as at first; `chosen_at` what was expected at the last change of any kind,
    endless if that had a backlog to drain.
    """

    order: Order | None = None
    delay_s: float | None = None
    still_s: float = 0.0
    pause_s: float = 0.0
    broken_s: float = 0.0
    since_change_s: float = math.inf
    wishes: tuple[Mapping[str, int], ...] = field(default=())
    saved_at: Mapping[str, float] | None = None
    patience: int = 1
    chosen_at: Mapping[str, float] = field(default_factory=dict)
    intervals: int = 0

    def ahead(self, interval_s: float) -> int:
        """Intervals until a change that is ordered now has its effect on a whole one."""
        return 1 + math.ceil(max(0.0, (self.delay_s or 0.0) - 0.1 * interval_s) / interval_s)

    def until_next(self, interval_s: float) -> int:
        """Intervals that a change which is ordered now has to last: the next can be ordered when this one
        has come, and takes as long again."""
        return 2 * self.ahead(interval_s) - 1

    @property
    def cost_s(self) -> float:
        """P."""
        return max(self.still_s, self.broken_s)

    def saved(self, broken_s: float) -> "Prices":
        """After a change that only saved, which broke so much."""
        return replace(self, broken_s=(self.broken_s + broken_s) / 2.0)

    def are_cheap(self, interval_s: float) -> bool:
        """Whether changes were seen, and the flow did not stand still for them."""
        return self.delay_s is not None and self.cost_s <= 0.5 * interval_s

    def looked(self, now: Mapping[str, int], interval_s: float, stood_still_s: float) -> "Prices":
        """After one more interval, which ended with these replicas."""
        found = replace(self, since_change_s=self.since_change_s + interval_s, intervals=self.intervals + 1)
        pause_s = self.pause_s + stood_still_s if stood_still_s > 0.0 else 0.0
        if self.since_change_s <= _GIVEN_UP_S:
            found = replace(found, pause_s=pause_s, still_s=max(self.still_s, pause_s))
        order = self.order
        if order is None:
            return found
        age_s = order.age_s + interval_s
        if order.has_come(now) and not order.adds:
            return replace(found, order=None)
        if order.has_come(now):
            # It came somewhere in the last interval.
            delay_s = max(0.0, age_s - interval_s)
            known = delay_s if self.delay_s is None else max(delay_s, 0.8 * self.delay_s)
            return replace(found, order=None, delay_s=known)
        patience_s = _GIVEN_UP_S if self.delay_s is None else 3.0 * self.delay_s + 4.0 * interval_s
        if age_s >= min(patience_s, _GIVEN_UP_S):
            return replace(found, order=None)
        return replace(found, order=replace(order, age_s=age_s))

    def wished(self, enough: Mapping[str, int]) -> "Prices":
        """With what would have been enough in one more interval."""
        return replace(self, wishes=(*self.wishes, dict(enough))[-_REMEMBERED:])

    def fewest(self, task: str, interval_s: float, expected: Mapping[str, float]) -> int | None:
        """The most that was wanted lately; None while too little is known."""
        agree = _SETTLED if self._is_settled(expected) else _AGREE
        needed = min(_REMEMBERED, agree * self.patience + self.ahead(interval_s))
        if len(self.wishes) < needed:
            return None
        return max(wish.get(task, 1) for wish in self.wishes[-needed:])

    def _is_settled(self, expected: Mapping[str, float]) -> bool:
        """Whether the load is no less than at the last change, or than ever, some minutes after the start."""
        return self.intervals > _SETTLED and all(
            rate >= _FALLEN * self.chosen_at.get(source, 0.0) for source, rate in expected.items()
        )

    def may_save(self, share: float) -> bool:
        """Whether a change that only saves is due."""
        return self.since_change_s >= self.cost_s / (1.0 - share)

    def is_worth(self, saved: int, whole: int) -> bool:
        """Whether it is a change to save so many replicas of so many."""
        return saved >= _WORTH * whole

    def ordered(
        self,
        replicas: Mapping[str, int],
        before: Mapping[str, int],
        expected: Mapping[str, float],
        *,
        drains: bool = False,
    ) -> "Prices":
        """After these were asked for, in place of those before, for so much from each source.

        If it `drains` a backlog, fewer are enough for the same load soon.
        """
        saves = all(count <= before.get(task, count) for task, count in replicas.items())
        return replace(
            self,
            order=Order(dict(replicas), dict(before)),
            since_change_s=0.0,
            saved_at=dict(expected) if saves else None,
            chosen_at={source: math.inf if drains else rate for source, rate in expected.items()},
            patience=self.patience if saves else self._patience_after_more(expected),
        )

    def _patience_after_more(self, expected: Mapping[str, float]) -> int:
        if self.saved_at is None:
            return self.patience
        if any(rate > _AS_MUCH * self.saved_at.get(source, 0.0) for source, rate in expected.items()):
            return 1
        return min(_MOST_PATIENCE, 2 * self.patience)
