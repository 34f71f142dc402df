"""How the key groups of a task are divided among its replicas: evenly, or by a table. Pure."""

import itertools
from collections.abc import Sequence

import msgspec

from penstock.wire.keys import KEY_GROUPS


class Span(msgspec.Struct, frozen=True, array_like=True):
    """Groups `first` to `last`, both included, of one replica."""

    first: int
    last: int
    replica: int


Spans = tuple[Span, ...]


def spans_of(owners: Sequence[int]) -> Spans:
    """A table from the replica of each group.

    >>> spans_of([0, 0, 1])
    (Span(first=0, last=1, replica=0), Span(first=2, last=2, replica=1))
    """
    spans: list[Span] = []
    for group, replica in enumerate(owners):
        if spans and spans[-1].replica == replica:
            spans[-1] = Span(spans[-1].first, group, replica)
        else:
            spans.append(Span(group, group, replica))
    return tuple(spans)


class Division(msgspec.Struct, frozen=True):
    """Among how many replicas keys are divided; without a table each has as many groups as the others.

    A replica may own nothing.
    """

    replicas: int
    table: Spans | None = None

    @property
    def spans(self) -> Spans:
        """Who owns what, in the order of groups."""
        if self.table is not None:
            return self.table
        firsts = [-(-replica * KEY_GROUPS // self.replicas) for replica in range(self.replicas + 1)]
        return tuple(
            Span(first, following - 1, replica)
            for replica, (first, following) in enumerate(itertools.pairwise(firsts))
            if first < following
        )

    def groups_of(self, replica: int) -> list[int]:
        """What a replica owns, in order."""
        return [g for span in self.spans if span.replica == replica for g in range(span.first, span.last + 1)]


def even_or(table: Spans, replicas: int) -> Spans | None:
    """The table, None if that is how keys are divided without one."""
    return None if table == Division(replicas).spans else table


def table_problem(table: Spans, replicas: int) -> str | None:
    """Why this cannot be a table for so many replicas, in words."""
    following = 0
    for span in table:
        if span.first != following or span.last < span.first:
            return f"groups {span.first} to {span.last} do not follow group {following - 1}"
        if not 0 <= span.replica < replicas:
            return f"groups {span.first} to {span.last} are to be of replica {span.replica} of {replicas}"
        following = span.last + 1
    return None if following == KEY_GROUPS else f"{following} of {KEY_GROUPS} groups have an owner"
