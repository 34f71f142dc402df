"""What the arena notes of an interval, and when it counts as held.

An interval is held if every constraint is (policy/held.py), and the sources kept up: latency counts from when
an item left its source, so whoever lets the sources fall behind would look good. Of what was due in the
interval, all but `MISSED` must have been sent, and no more than that may be owed at its end.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

if TYPE_CHECKING:
    from penstock.sim.engine import Interval

MISSED = 0.02
_FEW_ITEMS = 5.0


class Moment(msgspec.Struct, frozen=True):
    """One interval: whether it was held, the replicas of the elastic tasks, and the cores in use."""

    begin_s: float
    end_s: float
    held: bool
    replicas: dict[str, int]
    cores: float

    @property
    def length_s(self) -> float:
        return self.end_s - self.begin_s

    @property
    def total(self) -> int:
        """All replicas of elastic tasks."""
        return sum(self.replicas.values())


def moment_of(interval: Interval) -> Moment:
    """What is noted of an interval that has just ended."""
    snapshot = interval.snapshot
    held = all(constraint.held is not False for constraint in snapshot.constraints)
    return Moment(
        begin_s=interval.begin_s,
        end_s=interval.end_s,
        held=held and _kept_up(interval),
        replicas={name: task.parallelism for name, task in snapshot.elastic_tasks().items()},
        cores=snapshot.cores_used or 0.0,
    )


def owed(interval: Interval) -> float:
    """Items that were due at the sources and are not sent."""
    return sum(task.lag_items or 0.0 for task in interval.snapshot.tasks.values())


def _kept_up(interval: Interval) -> bool:
    few = max(_FEW_ITEMS, MISSED * interval.due)
    return interval.due - interval.emitted <= few and owed(interval) <= few
