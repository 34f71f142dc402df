"""What one replica of a task knows, by key group and key, and what of it has changed since the last mark.

A key that was touched counts as changed: whether a value was changed in place cannot be seen. Values are
pickled at the mark. An item that fails is undone by what `item()` remembered of the keys it touched. A key
may have an end, which is part of the state; `expire` removes those whose end has come, by the caller's clock.
"""

import pickle
from collections.abc import Callable, Hashable, Iterable, Iterator
from contextlib import contextmanager
from operator import itemgetter
from typing import Any

import msgspec

from penstock.epochs.alarms import Alarms
from penstock.wire.keys import key_group

Key = Hashable


class Change(msgspec.Struct, frozen=True, array_like=True):
    """A key with its value, or (a tombstone) None if it is gone; both pickled."""

    group: int
    key: bytes
    value: bytes | None
    until: int | None = None


class Handed(msgspec.Struct, frozen=True):
    """State on its way to another process: all keys of some groups, and which of them no file has yet."""

    groups: tuple[int, ...]
    values: tuple[Change, ...]
    changed: tuple[Change, ...]


class NotOwnedError(Exception):
    """An item came to a replica that does not own its key: nothing may go on from there."""


class NotReadableError(Exception):
    """A value of a commit cannot be read: its class has changed."""


class NotPicklableError(Exception):
    """A value cannot be kept anywhere but in memory."""


class _Nowhere(set[Key]):
    """Where changes are noted that nobody will ask for."""

    def add(self, key: Key) -> None:
        """Forget it."""


_NOWHERE = _Nowhere()


class KeyedState:
    """A dictionary per group. One that is not `tracked` does not know what has changed: nobody will ask."""

    def __init__(
        self, groups: Iterable[int], group_of: Callable[[Key], int] = key_group, *, tracked: bool = True
    ) -> None:
        self._values: dict[int, dict[Key, Any]] = {group: {} for group in groups}
        self._touched: dict[int, set[Key]] = {}
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

    def window(self, group: int) -> tuple[dict[Key, Any], set[Key]] | None:
        """The values of a group, and where to note what is touched; until something else is done here.

        For keys without an end. None if the group is not here, or what an item does is to be undone.
        """
        values = self._values.get(group)
        if values is None or self._before is not None:
            return None
        if not self._tracked:
            return values, _NOWHERE
        touched = self._touched.get(group)
        if touched is None:
            touched = self._touched[group] = set()
        return values, touched

    def end_only(self, has_end: Callable[[Key], bool]) -> None:
        """Other keys have no end any more."""
        for key in [key for key in self._until if not has_end(key)]:
            del self._until[key]

    def own_only(self, groups: Iterable[int]) -> None:
        """Drop all others, of which nothing is known yet."""
        self._values = {group: self._values[group] for group in groups if group in self._values}

    def get(self, key: Key, default: Any = None) -> Any:
        """The value of a key, which may be changed in place."""
        values = self._touch(key)
        return values.get(key, default)

    def put(self, key: Key, value: Any, until: int | None = None) -> None:
        """Give a key its value, and an end or none."""
        self._touch(key)[key] = value
        self._end(key, until)

    def remove(self, key: Key) -> None:
        """Forget a key; files remember that it is gone."""
        self._touch(key).pop(key, None)
        self._end(key, None)

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
            for key, (pickled, until) in self._before.items():
                self._set(self._values[self._group_of(key)], key, pickled, until)
            raise
        finally:
            self._before = None

    def take_changes(self) -> list[Change]:
        """What has changed since the last call: keys with values, tombstones for those that are gone."""
        touched, self._touched = self._touched, {}
        return [self._change(group, *pair) for group, keys in touched.items() for pair in _sorted(keys)]

    def everything(self) -> list[Change]:
        """All keys and values, as files have them; nothing counts as changed any more."""
        self._touched = {}
        return [
            self._change(group, pickle.dumps(key), key)
            for group, values in self._values.items()
            for key in values
        ]

    def own_more(self, groups: Iterable[int]) -> None:
        """Own groups of which nothing is known yet: it is about to be applied."""
        for group in groups:
            if group in self._values:
                raise NotOwnedError(f"group {group} has two owners")
            self._values[group] = {}

    def drop(self, groups: Iterable[int]) -> None:
        """Groups go to other processes, and files have all that is known of them."""
        for group in groups:
            if self._touched.pop(group, None):
                raise NotOwnedError(f"group {group} is to be dropped, and has changes that no file has")
            for key in self._values.pop(group):
                self._until.pop(key, None)

    def hand_over(self, groups: Iterable[int]) -> Handed:
        """Give groups away, with all that is known of them."""
        leaving = tuple(groups)
        for group in leaving:
            if group not in self._values:
                raise NotOwnedError(f"group {group} is to be handed over and is not here")
        changed = tuple(
            self._change(group, *pair)
            for group in leaving
            for pair in _sorted(self._touched.pop(group, set()))
        )
        values = tuple(
            self._change(group, pickle.dumps(key), key) for group in leaving for key in self._values[group]
        )
        for group in leaving:
            for key in self._values.pop(group):
                self._until.pop(key, None)
        return Handed(leaving, values, changed)

    def take_over(self, handed: Handed) -> None:
        """Own groups that another process had."""
        self.own_more(handed.groups)
        self.apply(handed.values)
        for change in handed.changed:
            self._touched.setdefault(change.group, set()).add(pickle.loads(change.key))

    def apply(self, changes: Iterable[Change]) -> None:
        """Take in what a file has; groups of others are left out."""
        for change in changes:
            values = self._values.get(change.group)
            if values is None:
                continue
            self._set(values, pickle.loads(change.key), change.value, change.until)

    def _set(self, values: dict[Key, Any], key: Key, pickled: bytes | None, until: int | None) -> None:
        values.pop(key, None)
        if pickled is not None:
            values[key] = _read(key, pickled)
        self._end(key, until)

    def _end(self, key: Key, until: int | None) -> None:
        if until is None:
            self._until.pop(key, None)
        else:
            self._until[key] = until
            self._ends.set(key, until)

    def _change(self, group: int, pickled: bytes, key: Key) -> Change:
        values = self._values[group]
        value = _pickled(key, values[key]) if key in values else None
        return Change(group, pickled, value, self._until.get(key))

    def _touch(self, key: Key) -> dict[Key, Any]:
        group = self._group_of(key)
        values = self._values.get(group)
        if values is None:
            raise NotOwnedError(f"key {key!r} is of group {group}, which this replica does not own")
        if self._before is not None and key not in self._before:
            pickled = _pickled(key, values[key]) if key in values else None
            self._before[key] = (pickled, self._until.get(key))
        if self._tracked:
            self._touched.setdefault(group, set()).add(key)
        return values


def _read(key: Key, pickled: bytes) -> Any:
    try:
        return pickle.loads(pickled)
    except Exception as problem:
        raise NotReadableError(
            f"the value of {key!r} in the commit cannot be read ({type(problem).__name__}: {problem}): its"
            " class must still be where it was, and read what it wrote; give the declaration another version="
            " and a migrate= function before you remove it"
        ) from problem


def _pickled(key: Key, value: Any) -> bytes:
    try:
        return pickle.dumps(value)
    except Exception as problem:
        raise NotPicklableError(
            f"the value of {key!r}, a {type(value).__name__}, cannot be pickled ({problem}); a class must be"
            " defined in a module that workers can import, not in the script that is run"
        ) from problem


def _sorted(keys: set[Key]) -> list[tuple[bytes, Key]]:
    """Each after its pickle, in the same order in every run."""
    return sorted(((pickle.dumps(key), key) for key in keys), key=itemgetter(0))
