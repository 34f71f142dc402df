"""What one replica of a task knows, by key group and key, and what of it has changed since the last mark.

A key that was touched counts as changed: whether a value was changed in place cannot be seen. Values are
pickled at the mark (portions.py). An item that fails is undone by what `item()` remembered of the keys it
touched. A key may have an end, which is part of the state; `expire` removes those whose end has come, by the
caller's clock.
"""

from collections.abc import Callable, Iterable, Iterator, Set
from contextlib import contextmanager
from itertools import compress
from typing import Any, Final

import msgspec

from penstock.epochs.alarms import Alarms
from penstock.epochs.portions import GONE, Key, Portion, pickled, portions_of, portions_of_keys, read
from penstock.state import Touched
from penstock.wire.keys import key_group

_STRETCH: Final = 256


class Handed(msgspec.Struct, frozen=True):
    """State on its way to another process: all keys of some groups, and which of them no file has yet."""

    groups: tuple[int, ...]
    values: tuple[Portion, ...]
    changed: tuple[Portion, ...]


class NotOwnedError(Exception):
    """An item came to a replica that does not own its key: nothing may go on from there."""


class KeyedState:
    """A dictionary per group. One that is not `tracked` does not know what has changed: nobody will ask."""

    def __init__(
        self, groups: Iterable[int], group_of: Callable[[Key], int] = key_group, *, tracked: bool = True
    ) -> None:
        self._values: dict[int, dict[Key, Any]] = {group: {} for group in groups}
        self._touched: dict[int, Touched] = {}
        # By stretches of groups. They stay when what has changed was taken: windows have them.
        self._until: dict[Key, int] = {}
        self._ends = Alarms()
        self._tracked = tracked
        self._group_of = group_of
        self._before: dict[Key, tuple[bytes | None, int | None]] | None = None

    @property
    def groups(self) -> set[int]:
        """What it owns."""
        return set(self._values)

    def owns(self, group: int) -> bool:
        """Whether a group is here."""
        return group in self._values

    def window(self, group: int) -> tuple[dict[Key, Any], Touched | None] | None:
        """The values of a group, and where to note what is touched (None: nobody will ask).

        For keys without an end, until groups change hands. None if the group is not here, or what an item
        does is to be undone.
        """
        values = self._values.get(group)
        if values is None or self._before is not None:
            return None
        return values, self._stretch(group) if self._tracked else None

    def _stretch(self, group: int) -> Touched:
        found = self._touched.get(group // _STRETCH)
        if found is None:
            found = self._touched[group // _STRETCH] = Touched({}, [])
        return found

    def end_only(self, has_end: Callable[[Key], bool]) -> None:
        """Other keys have no end any more."""
        for key in [key for key in self._until if not has_end(key)]:
            del self._until[key]

    def own_only(self, groups: Iterable[int]) -> None:
        """Drop all others, of which nothing is known yet."""
        self._values = {group: self._values[group] for group in groups if group in self._values}

    def get(self, key: Key, default: Any = None) -> Any:
        """The value of a key, which may be changed in place."""
        group, values = self._touch(key)
        found = values.get(key, GONE)
        self._note(group, key, found)
        return default if found is GONE else found

    def put(self, key: Key, value: Any, until: int | None = None) -> None:
        """Give a key its value, and an end or none."""
        group, values = self._touch(key)
        values[key] = value
        self._note(group, key, value)
        self._end(key, until)

    def remove(self, key: Key) -> None:
        """Forget a key; files remember that it is gone."""
        group, values = self._touch(key)
        values.pop(key, None)
        self._note(group, key, GONE)
        self._end(key, None)

    def _note(self, group: int, key: Key, value: Any) -> None:
        if self._tracked:
            self._stretch(group).note(group, key, value)

    def expire(self, now: int) -> None:
        """Remove every key whose end has come."""
        for key in self._ends.due(now, self._until.get):
            self.remove(key)

    def items(self) -> Iterator[tuple[Key, Any]]:
        """All keys and values, to look at."""
        for values in self._values.values():
            yield from values.items()

    @contextmanager
    def item(self) -> Iterator[None]:
        """Work on one item: if that raises, the state is as it was before."""
        self._before = {}
        try:
            yield
        except BaseException:
            for key, (was, until) in self._before.items():
                group = self._group_of(key)
                value = GONE if was is None else read(key, was)
                self._set(self._values[group], key, value, until)
                if self._tracked and key in (touched := self._stretch(group).values):
                    touched[key] = value
            raise
        finally:
            self._before = None

    def take_changes(self) -> list[Portion]:
        """What has changed since the last call: keys with values, tombstones for those that are gone."""
        return self._taken()

    def _taken(self, chosen: Set[int] | None = None) -> list[Portion]:
        """The same, perhaps of some groups."""
        found: list[Portion] = []
        for stretch in sorted(self._touched):
            groups, keys, values = self._forgotten(self._touched[stretch], chosen)
            found += portions_of_keys(groups, keys, values, self._until)
        return found

    def _forgotten(self, touched: Touched, chosen: Set[int] | None) -> tuple[list[int], list[Key], list[Any]]:
        """What was touched, perhaps of some groups, counts as changed no more."""
        if chosen is not None and chosen.isdisjoint(touched.groups):
            return [], [], []
        groups, keys, values = [*touched.groups], [*touched.values], [*touched.values.values()]
        touched.values.clear()
        touched.groups.clear()
        if chosen is None:
            return groups, keys, values
        mine = [group in chosen for group in groups]
        for is_mine, group, key, value in zip(mine, groups, keys, values, strict=True):
            if not is_mine:
                touched.note(group, key, value)
        return [*compress(groups, mine)], [*compress(keys, mine)], [*compress(values, mine)]

    def everything(self, groups: Iterable[int] | None = None) -> list[Portion]:
        """All keys and values of these groups, or of all, as files have them.

        Nothing of them counts as changed any more.
        """
        chosen = self._values if groups is None else {group: self._values[group] for group in groups}
        for touched in self._touched.values():
            self._forgotten(touched, chosen.keys())
        known = ((group, values) for group in sorted(chosen) if (values := chosen[group]))
        return [*portions_of(known, self._until)]

    def own_more(self, groups: Iterable[int]) -> None:
        """Own groups of which nothing is known yet: it is about to be applied."""
        for group in groups:
            if group in self._values:
                raise NotOwnedError(f"group {group} has two owners")
            self._values[group] = {}

    def drop(self, groups: Iterable[int]) -> None:
        """Groups go to other processes, and files have all that is known of them."""
        leaving = {*groups}
        for touched in self._touched.values():
            if changed := leaving.intersection(touched.groups):
                raise NotOwnedError(
                    f"group {min(changed)} is to be dropped, and has changes that no file has"
                )
        for group in leaving:
            self._forget(group)

    def _forget(self, group: int) -> None:
        gone = self._values.pop(group)
        for key in gone if self._until else ():
            self._until.pop(key, None)

    def hand_over(self, groups: Iterable[int]) -> Handed:
        """Give groups away, with all that is known of them."""
        leaving = tuple(groups)
        for group in leaving:
            if group not in self._values:
                raise NotOwnedError(f"group {group} is to be handed over and is not here")
        changed = self._taken({*leaving})
        values = self.everything(leaving)
        for group in leaving:
            self._forget(group)
        return Handed(leaving, tuple(values), tuple(changed))

    def take_over(self, handed: Handed) -> None:
        """Own groups that another process had."""
        self.own_more(handed.groups)
        self.apply(handed.values)
        for portion in handed.changed:
            for group, key, _, _ in portion.entries(handed.groups):
                self._note(group, key, self._values[group].get(key, GONE))

    def apply(self, portions: Iterable[Portion]) -> None:
        """Take in what a file has; groups of others are left out."""
        for portion in portions:
            pairs = None if self._until else portion.pairs()
            if pairs is None:
                for group, key, value, until in portion.entries(self._values):
                    self._set(self._values[group], key, value, until)
                continue
            for group, run in portion.runs():
                if group in self._values:
                    self._values[group].update(pairs[run])

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

    def _touch(self, key: Key) -> tuple[int, dict[Key, Any]]:
        """Its group, and the values of that."""
        group = self._group_of(key)
        values = self._values.get(group)
        if values is None:
            raise NotOwnedError(f"key {key!r} is of group {group}, which this replica does not own")
        if self._before is not None and key not in self._before:
            was = pickled(key, values[key]) if key in values else None
            self._before[key] = (was, self._until.get(key))
        return group, values
