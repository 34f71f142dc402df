"""What a replica knows under one declaration, by key, and what of it has changed since the last mark.

A key that was touched counts as changed: whether a value was changed in place cannot be seen. Values are
pickled at the mark (portions.py). An item that fails is undone by what `item()` remembered of the keys it
touched. A key may have an end, which is part of the state; `expire` removes those whose end has come, by the
caller's clock.

Keys lie by stretches of groups: a dictionary of each group would cost every item two more looks into memory
that is not in the caches. Where only some groups of a stretch are meant, its keys are asked for their groups.
"""

from collections.abc import Callable, Iterable, Iterator
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
    """A stretch: values by key, those that were touched since the last mark (None: nobody will ask), and
    the groups of it that are here (None: all of them).
    """

    values: dict[Key, Any]
    touched: dict[Key, Any] | None
    mine: frozenset[int] | None


class KeyedState:
    """A dictionary for each stretch of groups. One that is not `tracked` does not know what has changed."""

    def __init__(
        self,
        groups: Iterable[int],
        group_of: Callable[[Key], int] = key_group,
        *,
        name: str | None = None,
        tracked: bool = True,
        tells_groups: bool = True,
    ) -> None:
        """`name` is what was declared; files say it of each portion, and the groups of keys if it `tells`."""
        self.groups: set[int] = set()
        """What it owns."""
        self.shelves: dict[int, Shelf] = {}
        """By stretch: one for each of which it owns a group. It stays the same object."""
        self._name = name
        self._tells_groups = tells_groups
        self._until: dict[Key, int] = {}
        self._ends = Alarms()
        self._tracked = tracked
        self._group_of = group_of
        self._before: dict[Key, tuple[bytes | None, int | None]] | None = None
        self._own(groups)

    def _own(self, groups: Iterable[int]) -> None:
        coming = {*groups}
        self.groups |= coming
        for stretch in self._stretches(coming):
            values, touched, _ = self.shelves.get(stretch) or Shelf({}, {} if self._tracked else None, None)
            self._put_up(stretch, values, touched)

    def _put_up(self, stretch: int, values: dict[Key, Any], touched: dict[Key, Any] | None) -> None:
        mine = self._mine(stretch)
        self.shelves[stretch] = Shelf(values, touched, None if len(mine) == STRETCH else frozenset(mine))

    def own_only(self, groups: Iterable[int]) -> None:
        """Drop all others, of which nothing is known yet."""
        self._leave(self.groups - {*groups})

    def forget_ends(self) -> None:
        """No key has an end any more."""
        self._until.clear()

    def get(self, key: Key, default: Any = None) -> Any:
        """The value of a key, which may be changed in place."""
        values, touched, _ = self._touch(key)
        found = values.get(key, GONE)
        if found is GONE:
            return default
        if touched is not None:
            touched[key] = found
        return found

    def put(self, key: Key, value: Any, until: int | None = None) -> None:
        """Give a key its value, and an end or none."""
        values, touched, _ = self._touch(key)
        values[key] = value
        if touched is not None:
            touched[key] = value
        self._end(key, until)

    def remove(self, key: Key) -> None:
        """Forget a key; files remember that it is gone."""
        values, touched, _ = self._touch(key)
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
            values, touched, _ = self._shelf(key)
            value = GONE if was is None else read(key, was, self._name)
            self._set(values, key, value, until)
            if touched is not None and key in touched:
                touched[key] = value

    def take_changes(self) -> list[Portion]:
        """What has changed since the last call: keys with values, tombstones for those that are gone."""
        return self._taken(None)

    def _taken(self, groups: set[int] | None) -> list[Portion]:
        """The same of some groups, or of all; nothing of them counts as changed any more."""
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
        chosen = None if groups is None else self.groups & {*groups}
        found: list[Portion] = []
        for stretch in self._stretches(chosen):
            values, touched, _ = self.shelves[stretch]
            found += self._portions(values, stretch, chosen)
            if touched:
                self._settle(touched, stretch, chosen)
        return found

    def _stretches(self, groups: set[int] | None) -> list[int]:
        """Those that have some of these groups, or of all, in order."""
        return sorted(self.shelves if groups is None else {group // STRETCH for group in groups})

    def _mine(self, stretch: int, chosen: set[int] | None = None) -> list[int]:
        """The groups of a stretch that are here, or those of them that are chosen, in order."""
        span = range(stretch * STRETCH, (stretch + 1) * STRETCH)
        return [group for group in span if group in self.groups and (chosen is None or group in chosen)]

    def _is_whole(self, stretch: int, chosen: set[int] | None) -> bool:
        """Whether these are all that is here of a stretch."""
        return chosen is None or chosen.issuperset(self._mine(stretch))

    def _portions(self, known: dict[Key, Any], stretch: int, chosen: set[int] | None) -> Iterator[Portion]:
        keys, values, groups, mine = [*known], [*known.values()], None, self._mine(stretch, chosen)
        if self._tells_groups or not self._is_whole(stretch, chosen):
            groups = [*map(self._group_of, keys)]
            is_mine = [*map({*mine}.__contains__, groups)]
            groups, keys, values = ([*compress(some, is_mine)] for some in (groups, keys, values))
        told = groups if self._tells_groups else None
        return portions_of((mine[0], mine[-1]), keys, values, self._until, self._name, told)

    def _settle(self, touched: dict[Key, Any], stretch: int, chosen: set[int] | None) -> None:
        if chosen is None or self._is_whole(stretch, chosen):
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
        leaving = self.groups & {*groups}
        for stretch in self._stretches(leaving):
            for key in self.shelves[stretch].touched or ():
                if (group := self._group_of(key)) in leaving:
                    raise NotOwnedError(f"group {group} is to be dropped, and has changes that no file has")
        self._leave(leaving)

    def _leave(self, leaving: set[int]) -> None:
        """These groups are no longer here, and what is known of them; nothing of it counts as changed."""
        whole = {stretch for stretch in self._stretches(leaving) if self._is_whole(stretch, leaving)}
        self.groups -= leaving
        for stretch in self._stretches(leaving):
            values, touched, _ = self.shelves[stretch]
            if stretch in whole:
                gone = [*values] if self._until else []
                del self.shelves[stretch]
            else:
                gone = [key for key in values if self._group_of(key) in leaving]
                for key in gone:
                    del values[key]
                self._put_up(stretch, values, touched)
            for key in gone:
                self._until.pop(key, None)

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
                values, touched, _ = self._shelf(key)
                if touched is not None:
                    touched[key] = values.get(key, GONE)

    def apply(self, portions: Iterable[Portion]) -> None:
        """Take in what a file has; groups of others are left out."""
        for portion in portions:
            first, last = portion.span
            is_mine = first // STRETCH == last // STRETCH and portion.is_within(self.groups)
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
