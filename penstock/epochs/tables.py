"""Which replica of a keyed task owns which key groups, and what changes from one table to the next."""

from collections.abc import Iterable, Sequence

import msgspec

from penstock.wire.divisions import Span, spans_of
from penstock.wire.keys import KEY_GROUPS, owner


class Move(msgspec.Struct, frozen=True, array_like=True):
    """Groups `first` to `last` leave a replica for another."""

    first: int
    last: int
    giver: int
    taker: int

    @property
    def groups(self) -> range:
        """What moves."""
        return range(self.first, self.last + 1)


class Table(msgspec.Struct, frozen=True):
    """The owner of every group. A higher version is a newer table of the same task."""

    version: int
    spans: tuple[Span, ...]

    def owner(self, group: int) -> int:
        """The replica of a group."""
        for span in self.spans:
            if span.first <= group <= span.last:
                return span.replica
        raise ValueError(f"the table has no group {group}")

    def groups_of(self, replica: int) -> list[int]:
        """What a replica owns, in order."""
        return [g for span in self.spans if span.replica == replica for g in range(span.first, span.last + 1)]

    @property
    def owners(self) -> list[int]:
        """The replica of each group."""
        return [span.replica for span in self.spans for _ in range(span.first, span.last + 1)]


def table_of(version: int, owners: Sequence[int]) -> Table:
    """A table from the replica of each group.

    >>> table_of(1, [0, 0, 1]).spans
    (Span(first=0, last=1, replica=0), Span(first=2, last=2, replica=1))
    """
    return Table(version, spans_of(owners))


def even_table(version: int, replicas: int, groups: int = KEY_GROUPS) -> Table:
    """Ranges of equal size, the same as the wiring by key uses."""
    if groups == KEY_GROUPS:
        return table_of(version, [owner(group, replicas) for group in range(groups)])
    return table_of(version, [group * replicas // groups for group in range(groups)])


def moves(old: Table, new: Table) -> list[Move]:
    """Which groups have another owner in the newer table.

    >>> moves(table_of(1, [0, 0, 1]), table_of(2, [0, 1, 1]))
    [Move(first=1, last=1, giver=0, taker=1)]
    """
    found: list[Move] = []
    before, after = old.owners, new.owners
    if len(before) != len(after):
        raise ValueError(f"{len(before)} groups cannot become {len(after)}: their number is the checkpoint's")
    for group, (giver, taker) in enumerate(zip(before, after, strict=True)):
        if giver == taker:
            continue
        last = found[-1] if found else None
        if last and (last.last, last.giver, last.taker) == (group - 1, giver, taker):
            found[-1] = Move(last.first, group, giver, taker)
        else:
            found.append(Move(group, group, giver, taker))
    return found


def ranges(groups: Iterable[int]) -> tuple[tuple[int, int], ...]:
    """Groups as pairs of first and last, for short entries.

    >>> ranges([4, 1, 2, 3, 9])
    ((1, 4), (9, 9))
    """
    found: list[tuple[int, int]] = []
    for group in sorted(set(groups)):
        if found and found[-1][1] == group - 1:
            found[-1] = (found[-1][0], group)
        else:
            found.append((group, group))
    return tuple(found)
