"""What a replica knows under one declaration, by key, and what of it has changed since the last mark.

A key that was touched counts as changed: whether a value was changed in place cannot be seen. Values are
pickled at the mark (portions.py). An item that fails is undone by what `item()` remembered of the keys it
touched. A key may have an end, which is part of the state; `expire` removes those whose end has come, by the
caller's clock.

Keys lie by stretches of groups: a dictionary of each group would cost every item two more looks into memory
that is not in the caches. Where only some groups of a stretch are meant, its keys are asked for their groups.
"""

from collections.abc import Callable, Iterable, Iterator, Set
from contextlib import contextmanager
from itertools import compress
from typing import Any, Final, NamedTuple

import msgspec

from penstock.epochs.alarms import Alarms
from penstock.epochs.portions import GONE, Key, Portion, pickled, portions_of, read
from penstock.wire.keys import key_group

STRETCH: Final = 256
"""Groups."""


class Handed(msgspec.Struct, frozen=True):
    """State on its way to another process: all keys of some groups, and which of them no file has yet."""

    groups: tuple[int, ...]
    values: tuple[Portion, ...]
    changed: tuple[Portion, ...]


class NotOwnedError(Exception):
    """An item came to a replica that does not own its key: nothing may go on from there."""


class Shelf(NamedTuple):
    """A stretch: values by key, and those that were touched since the last mark (None: nobody will ask)."""

    values: dict[Key, Any]
    touched: dict[Key, Any] | None


class KeyedState:
    """A dictionary for each stretch of groups. One that is not `tracked` does not know what has changed."""

    def __init__(
        self,
        groups: Iterable[int],
        group_of: Callable[[Key], int] = key_group,
        *,
        name: str | None = None,
        tracked: bool = True,
    ) -> None:
        """`name` is what was declared; files say it of each portion."""
        self.groups: set[int] = set()
        """What it owns."""
        self.shelves: dict[int, Shelf] = {}
        """By stretch: one for each of which it owns a group. Both stay the same objects."""
        self._name = name
        self._until: dict[Key, int] = {}
        self._ends = Alarms()
        self._tracked = tracked
        self._group_of = group_of
        self._before: dict[Key, tuple[bytes | None, int | None]] | None = None
        self._own(groups)

    def _own(self, groups: Iterable[int]) -> None:
        for group in groups:
            self.groups.add(group)
            if group // STRETCH not in self.shelves:
                self.shelves[group // STRETCH] = Shelf({}, {} if self._tracked else None)

    def owns(self, group: int) -> bool:
        """Whether a group is here."""
        return group in self.groups

    def own_only(self, groups: Iterable[int]) -> None:
        """Drop all others, of which nothing is known yet."""
        self._leave(self.groups.difference(groups))

    def forget_ends(self) -> None:
        """No key has an end any more."""
        self._until.clear()

    def get(self, key: Key, default: Any = None) -> Any:
        """The value of a key, which may be changed in place."""
        values, touched = self._touch(key)
        found = values.get(key, GONE)
        if found is GONE:
            return default
        if touched is not None:
            touched[key] = found
        return found

    def put(self, key: Key, value: Any, until: int | None = None) -> None:
        """Give a key its value, and an end or none."""
        values, touched = self._touch(key)
        values[key] = value
        if touched is not None:
            touched[key] = value
        self._end(key, until)

    def remove(self, key: Key) -> None:
        """Forget a key; files remember that it is gone."""
        values, touched = self._touch(key)
        values.pop(key, None)
        if touched is not None:
            touched[key] = GONE
        self._end(key, None)

    def expire(self, now: int) -> None:
        """Remove every key whose end has come."""
        for key in self._ends.due(now, self._until.get):
            self.remove(key)

    def items(self) -> Iterator[tuple[Key, Any]]:
        """All keys and values, to look at."""
        for shelf in self.shelves.values():
            yield from shelf.values.items()

    @contextmanager
    def item(self) -> Iterator[None]:
        """Work on one item: if that raises, the state is as it was before."""
        self.remember()
        try:
            yield
        except BaseException:
            self.undo()
            raise
        finally:
            self.keep()

    def remember(self) -> None:
        """What is done from now on may be undone."""
        self._before = {}

    def keep(self) -> None:
        """What was done stays."""
        self._before = None

    def undo(self) -> None:
        """All is as it was."""
        for key, (was, until) in (self._before or {}).items():
            values, touched = self._shelf(key)
            value = GONE if was is None else read(key, was, self._name)
            self._set(values, key, value, until)
            if touched is not None and key in touched:
                touched[key] = value

    def take_changes(self) -> list[Portion]:
        """What has changed since the last call: keys with values, tombstones for those that are gone."""
        return self._taken(self.groups)

    def _taken(self, groups: Set[int]) -> list[Portion]:
        """The same of some groups; nothing of them counts as changed any more."""
        found: list[Portion] = []
        for stretch in self._stretches(groups):
            touched = self.shelves[stretch].touched
            if touched:
                found += self._portions(touched, stretch, groups)
                self._settle(touched, stretch, groups)
        return found

    def everything(self, groups: Iterable[int] | None = None) -> list[Portion]:
        """All keys and values of these groups, or of all, as files have them.

        Nothing of them counts as changed any more.
        """
        chosen = self.groups if groups is None else self.groups.intersection(groups)
        found: list[Portion] = []
        for stretch in self._stretches(chosen):
            values, touched = self.shelves[stretch]
            found += self._portions(values, stretch, chosen)
            if touched:
                self._settle(touched, stretch, chosen)
        return found

    def _stretches(self, groups: Set[int]) -> list[int]:
        """Those that have some of these groups, in order."""
        return sorted(self.shelves if groups is self.groups else {group // STRETCH for group in groups})

    def _is_whole(self, stretch: int, groups: Set[int]) -> bool:
        """Whether these are all that is owned of a stretch."""
        span = range(stretch * STRETCH, (stretch + 1) * STRETCH)
        return groups is self.groups or all(group in groups for group in span if group in self.groups)

    def _portions(self, known: dict[Key, Any], stretch: int, chosen: Set[int]) -> Iterator[Portion]:
        groups = [*map(self._group_of, known)]
        keys, values = [*known], [*known.values()]
        if not self._is_whole(stretch, chosen):
            mine = [group in chosen for group in groups]
            groups, keys, values = ([*compress(some, mine)] for some in (groups, keys, values))
        return portions_of(groups, keys, values, self._until, self._name)

    def _settle(self, touched: dict[Key, Any], stretch: int, chosen: Set[int]) -> None:
        if self._is_whole(stretch, chosen):
            touched.clear()
            return
        for key in [key for key in touched if self._group_of(key) in chosen]:
            del touched[key]

    def own_more(self, groups: Iterable[int]) -> None:
        """Own groups of which nothing is known yet: it is about to be applied."""
        coming = [*groups]
        for group in coming:
            if group in self.groups:
                raise NotOwnedError(f"group {group} has two owners")
        self._own(coming)

    def drop(self, groups: Iterable[int]) -> None:
        """Groups go to other processes, and files have all that is known of them."""
        leaving = self.groups.intersection(groups)
        for stretch in self._stretches(leaving):
            for key in self.shelves[stretch].touched or ():
                if (group := self._group_of(key)) in leaving:
                    raise NotOwnedError(f"group {group} is to be dropped, and has changes that no file has")
        self._leave(leaving)

    def _leave(self, leaving: set[int]) -> None:
        """These groups are no longer here, and what is known of them."""
        for stretch in self._stretches(leaving):
            values, touched = self.shelves[stretch]
            if self._is_whole(stretch, leaving):
                gone = [*values] if self._until else []
                del self.shelves[stretch]
            else:
                gone = [key for key in values if self._group_of(key) in leaving]
                for key in gone:
                    del values[key]
                if touched:
                    self._settle(touched, stretch, leaving)
            for key in gone:
                self._until.pop(key, None)
        self.groups -= leaving

    def hand_over(self, groups: Iterable[int]) -> Handed:
        """Give groups away, with all that is known of them."""
        leaving = {*groups}
        for group in leaving:
            if group not in self.groups:
                raise NotOwnedError(f"group {group} is to be handed over and is not here")
        changed = self._taken(leaving)
        values = self.everything(leaving)
        self._leave(leaving)
        return Handed(tuple(sorted(leaving)), tuple(values), tuple(changed))

    def take_over(self, handed: Handed) -> None:
        """Own groups that another process had."""
        self.own_more(handed.groups)
        self.apply(handed.values)
        for portion in handed.changed:
            for _, key, _, _ in portion.entries(handed.groups):
                values, touched = self._shelf(key)
                if touched is not None:
                    touched[key] = values.get(key, GONE)

    def apply(self, portions: Iterable[Portion]) -> None:
        """Take in what a file has; groups of others are left out."""
        for portion in portions:
            first, last = portion.span
            is_mine = first // STRETCH == last // STRETCH and self.groups.issuperset(portion.groups)
            if is_mine and not self._until and (pairs := portion.pairs()) is not None:
                self.shelves[first // STRETCH].values.update(pairs)
                continue
            for group, key, value, until in portion.entries(self.groups):
                self._set(self.shelves[group // STRETCH].values, key, value, until)

    def _set(self, values: dict[Key, Any], key: Key, value: Any, until: int | None) -> None:
        values.pop(key, None)
        if value is not GONE:
            values[key] = value
        self._end(key, until)

    def _end(self, key: Key, until: int | None) -> None:
        if until is None:
            self._until.pop(key, None)
        else:
            self._until[key] = until
            self._ends.set(key, until)

    def _shelf(self, key: Key) -> Shelf:
        group = self._group_of(key)
        if group not in self.groups:
            raise not_owned(key, group)
        return self.shelves[group // STRETCH]

    def _touch(self, key: Key) -> Shelf:
        """Where it lies; what is there may have to be undone."""
        shelf = self._shelf(key)
        if self._before is not None and key not in self._before:
            was = pickled(key, shelf.values[key], self._name) if key in shelf.values else None
            self._before[key] = (was, self._until.get(key))
        return shelf


def not_owned(key: Key, group: int) -> NotOwnedError:
    """A key is of another replica."""
    return NotOwnedError(f"key {key!r} is of group {group}, which this replica does not own")
