"""How many items each group of keys was sent, and how long some of them took.

A sender counts every item by its group, and tells the heaviest groups by themselves and all of them in slices
of equal size: so little is said, and what is known of the others follows from their slice. Slices do not
depend on who owns which group, so reports from before and after a change add up.
"""

from collections.abc import Iterable, Mapping
from typing import Final

import msgspec

HEAVIEST: Final = 64
"""Groups that a sender tells of by themselves."""

SLICE: Final = 64
"""Groups in a row whose items are told as a sum."""


class KeyLoad(msgspec.Struct, frozen=True):
    """Items sent into a stream, or to a task: of the heaviest groups, and of each slice of all groups."""

    groups: dict[int, int] = {}
    slices: list[int] = []

    def merged(self, other: "KeyLoad") -> "KeyLoad":
        """Of two senders, or of an interval and a later one."""
        if not (self.slices and other.slices):
            return other if other.slices else self
        return KeyLoad(
            groups={
                group: self.groups.get(group, 0) + other.groups.get(group, 0)
                for group in self.groups.keys() | other.groups.keys()
            },
            slices=[one + two for one, two in zip(self.slices, other.slices, strict=True)],
        )

    @property
    def total(self) -> int:
        """All items."""
        return sum(self.slices)

    def heaviest(self, count: int) -> list[tuple[int, int]]:
        """Groups and their items, the heaviest first."""
        return sorted(self.groups.items(), key=lambda one: (-one[1], one[0]))[:count]

    def between(self, first: int, last: int) -> float:
        """Items of groups `first` to `last`; groups that are not known by themselves share their slice."""
        items = float(sum(count for group, count in self.groups.items() if first <= group <= last))
        for number, count in enumerate(self.slices):
            begin, end = number * SLICE, (number + 1) * SLICE
            inside = range(max(first, begin), min(last + 1, end))
            known = [group for group in self.groups if begin <= group < end]
            unknown = SLICE - len(known)
            if inside and unknown:
                others = len(inside) - sum(group in inside for group in known)
                items += max(0, count - sum(self.groups[group] for group in known)) * others / unknown
        return items


class GroupTime(msgspec.Struct, frozen=True, array_like=True):
    """Of a group: items that were timed, and how long they took together."""

    items: int = 0
    took_ms: float = 0.0


def merged_times(one: Mapping[int, GroupTime], two: Mapping[int, GroupTime]) -> dict[int, GroupTime]:
    """What both say, by group."""
    found = dict(one)
    for group, time in two.items():
        known = found.get(group, GroupTime())
        found[group] = GroupTime(known.items + time.items, known.took_ms + time.took_ms)
    return found


def merged_loads(loads: Iterable[KeyLoad]) -> KeyLoad:
    """Of all senders."""
    whole = KeyLoad()
    for load in loads:
        whole = whole.merged(load)
    return whole
