"""An open-loop source: every item has a due time that does not depend on how fast anything downstream is."""

import inspect
from bisect import bisect_right
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Generic, TypeVar

from penstock import durations
from penstock.durations import Duration
from penstock.io.protocol import SourceClock
from penstock.io.schedule import NS_PER_S, Schedule, as_schedule
from penstock.io.splits import numbered_splits, split_number

Item = TypeVar("Item")
_AHEAD = 128


@dataclass(frozen=True)
class Paced(Generic[Item]):
    """Item k of all is due at T(k) of the schedule and belongs to partition k mod partitions.

    The offset of a partition is how many of its items have been read. A run that begins at offset j goes on
    with the schedule there: item k is due at run start + T(k) - T(j * partitions).
    """

    make: Callable[..., Item]
    schedule: Schedule
    partitions: int
    seed: int
    total: int | None
    wants_due: bool
    name: str = "paced"

    @property
    def splits(self) -> tuple[str, ...]:
        return numbered_splits(self.partitions)

    @property
    def endless(self) -> bool:
        """Whether it goes on for ever."""
        return self.total is None

    def start(self, split: str) -> int:  # noqa: ARG002 - all splits begin alike
        return 0

    def open(self, split: str, offset: int, clock: SourceClock) -> "PacedReader[Item]":
        return PacedReader(self, split_number(split), offset, clock)

    def count(self, partition: int) -> int | None:
        """How many items a partition has in all; None without an end."""
        return None if self.total is None else len(range(partition, self.total, self.partitions))


@dataclass
class PacedReader(Generic[Item]):
    """Makes what is due by now, however late it comes: a source that was held up catches up."""

    source: Paced[Item]
    partition: int
    offset: int
    clock: SourceClock
    _zero_ns: int = field(init=False)
    _end: int | None = field(init=False)
    _ahead_ns: list[int] = field(init=False, default_factory=list)
    """Due times from the offset on, worked out before the source sleeps and not when an item is due."""

    def __post_init__(self) -> None:
        first_s = self.source.schedule.due_s(self.clock.run_offset * self.source.partitions)
        self._end = self.source.count(self.partition)
        # A schedule that is used up has no due time to resume at, and no item that would need one.
        self._zero_ns = self.clock.run_start_ns - (
            0 if first_s == float("inf") else round(first_s * NS_PER_S)
        )

    def read(self, limit: int, wait_s: float) -> tuple[list[Item], list[int] | None] | None:
        if self._end is not None and self.offset >= self._end:
            return None
        if not self._ahead_ns:
            self._look_ahead()
        next_ns = self._ahead_ns[0]
        now_ns = self.clock.now_ns()
        if next_ns > now_ns:
            self.clock.sleep(min(wait_s, (next_ns - now_ns) / NS_PER_S))
            now_ns = self.clock.now_ns()
            if next_ns > now_ns:
                return [], None
        due = self._due_by(now_ns, limit)
        source, first = self.source, self.offset
        make, partition, seed = source.make, self.partition, source.seed
        indexes = range(first, first + len(due))
        if source.wants_due:
            items = [make(partition, index, seed, due_ns=at) for index, at in zip(indexes, due, strict=True)]
        else:
            items = [make(partition, index, seed) for index in indexes]
        self.offset += len(items)
        return items, due

    def close(self) -> None:
        """Nothing is held."""

    def _due_by(self, now_ns: int, limit: int) -> list[int]:
        """Due times, up to now, of at most `limit` items from the offset on; there is at least one."""
        ahead_ns = self._ahead_ns
        while ahead_ns[-1] <= now_ns and len(ahead_ns) < limit and self._look_ahead():
            pass
        count = bisect_right(ahead_ns, now_ns, 0, min(limit, len(ahead_ns)))
        due = ahead_ns[:count]
        del ahead_ns[:count]
        return due

    def _look_ahead(self) -> bool:
        """Work out some more due times; False if there are none."""
        begin, count = self.offset + len(self._ahead_ns), _AHEAD
        if self._end is not None:
            count = min(count, self._end - begin)
        source, zero_ns = self.source, self._zero_ns
        first = begin * source.partitions + self.partition
        self._ahead_ns += [zero_ns + at for at in source.schedule.due_ns(first, source.partitions, count)]
        return count > 0


def paced(
    make: Callable[..., Item],
    rate: float | Schedule,
    partitions: int = 1,
    seed: int = 0,
    count: int | None = None,
    seconds: Duration | None = None,
) -> Paced[Item]:
    """Items made by `make(partition, index, seed)` at `rate` items/s over all partitions together.

    `rate` is a number or a `Schedule`. `index` counts the items of the partition from 0. A `make` that has a
    parameter named `due_ns` is also given the time at which the item is due (CLOCK_MONOTONIC, ns). The source
    ends after `count` items of all partitions, after `seconds` of its schedule, or when the schedule ends.
    """
    if partitions < 1:
        raise ValueError(f"a paced source needs at least 1 partition, not {partitions!r}")
    if count is not None and count < 0:
        raise ValueError(f"count of a paced source must be 0 or more, not {count!r}")
    schedule = as_schedule(rate)
    limits = [schedule.total_items, count, None if seconds is None else _items_within(schedule, seconds)]
    known = [limit for limit in limits if limit is not None]
    return Paced(make, schedule, partitions, seed, min(known, default=None), _wants_due(make))


def _items_within(schedule: Schedule, limit: Duration) -> int:
    """Number of items due before a time: the smallest k with T(k) >= it."""
    limit_s = durations.seconds(limit)
    index = max(0, int(schedule.items_by(limit_s)) - 1)
    while schedule.due_s(index) < limit_s:
        index += 1
    return index


def _wants_due(make: Callable[..., object]) -> bool:
    try:
        return "due_ns" in inspect.signature(make).parameters
    except (TypeError, ValueError):
        return False  # built-in functions need not tell their parameters
