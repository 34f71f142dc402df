"""State as files have it: many keys of one declaration with their values at once.

Values of plain types are pickled together, others each by itself: one that cannot be pickled, or read, is
named by its key then, and those that nobody asks for are not touched.
"""

import pickle
from collections import defaultdict
from collections.abc import Container, Hashable, Iterable, Iterator, Mapping, Sequence
from itertools import compress, repeat
from operator import attrgetter
from typing import Any, Final

import msgspec

from penstock.state import PLAIN
from penstock.wire.keys import key_group

Key = Hashable
GONE: Final = object()
"""In place of the value of a key that is not there."""
_MOST_KEYS: Final = 1024
"""A worker takes a portion in without a break."""
_BY_GROUP: Final = attrgetter("group")


class NotReadableError(Exception):
    """A value of a commit cannot be read: its class has changed."""


class NotPicklableError(Exception):
    """A value cannot be kept anywhere but in memory."""


class Change(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """A key with its value, or (a tombstone) None if it is gone; both pickled. `name`: of the declaration."""

    group: int
    key: bytes
    value: bytes | None
    until: int | None = None
    name: str | None = None


class Portion(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """Some keys, each of them once, with values, or (tombstones) None.

    `span` are the lowest and the highest group that a key may be of. `keys` is a pickled list; so is `values`
    if all are plain, else it has each of them pickled. `until` are the ends of the keys, if any has one.
    `name` is that of the declaration. `groups` are those of the keys, one by one, if they cannot be told
    from span and keys: to hash all keys again is up to who reads only some of them.
    """

    span: tuple[int, int]
    keys: bytes
    values: bytes | tuple[bytes, ...] | None
    until: tuple[int | None, ...] | None = None
    name: str | None = None
    groups: tuple[int, ...] | None = None

    @property
    def possible(self) -> Iterable[int]:
        """The groups that keys may be of."""
        return range(self.span[0], self.span[1] + 1) if self.groups is None else self.groups

    def is_within(self, groups: Container[int]) -> bool:
        """Whether all that it has is of these groups, as far as that can be told without its keys."""
        return all(group in groups for group in self.possible)

    def _groups_of(self, keys: list[Key]) -> Sequence[int]:
        if self.groups is not None:
            return self.groups
        first, last = self.span
        return [first] * len(keys) if first == last else [*map(key_group, keys)]

    def entries(self, wanted: Container[int]) -> Iterator[tuple[int, Key, Any, int | None]]:
        """Group, key, value and end of the keys in wanted groups; `GONE` is the value of a tombstone."""
        keys, values = pickle.loads(self.keys), self.values
        plain = pickle.loads(values) if isinstance(values, bytes) else None

        def value(at: int) -> Any:
            if plain is not None:
                return plain[at]
            return read(keys[at], values[at], self.name) if isinstance(values, tuple) else GONE

        for at, group in enumerate(self._groups_of(keys)):
            if group in wanted:
                yield group, keys[at], value(at), None if self.until is None else self.until[at]

    def pairs(self) -> list[tuple[Key, Any]] | None:
        """Keys and values, if all are plain and have no end: the quick way."""
        if self.until is not None or not isinstance(self.values, bytes):
            return None
        return [*zip(pickle.loads(self.keys), pickle.loads(self.values), strict=True)]

    def changes(self) -> Iterator[Change]:
        """One by one."""
        keys, values = pickle.loads(self.keys), self.values
        pickled: Iterable[bytes | None]
        if isinstance(values, bytes):
            pickled = map(pickle.dumps, pickle.loads(values))
        else:
            pickled = repeat(None, len(keys)) if values is None else values
        ends = self.until or repeat(None, len(keys))
        groups = self._groups_of(keys)
        return map(Change, groups, map(pickle.dumps, keys), pickled, ends, repeat(self.name))

    def within(self, groups: Container[int]) -> "Portion | None":
        """What it has of these groups."""
        if self.is_within(groups):
            return self
        keys = pickle.loads(self.keys)
        of_keys = self._groups_of(keys)
        mine = [group in groups for group in of_keys]
        if not any(mine):
            return None
        values = self.values
        if isinstance(values, bytes):
            values = pickle.dumps([*compress(pickle.loads(values), mine)])
        elif values is not None:
            values = tuple(compress(values, mine))
        until = None if self.until is None else tuple(compress(self.until, mine))
        left = None if self.groups is None else tuple(compress(of_keys, mine))
        return Portion(self.span, pickle.dumps([*compress(keys, mine)]), values, until, self.name, left)


def portions_of(
    span: tuple[int, int],
    keys: list[Key],
    values: list[Any],
    until: Mapping[Key, int],
    name: str | None = None,
    groups: list[int] | None = None,
) -> Iterator[Portion]:
    """What is known of some keys. A worker does nothing else meanwhile, so there is little to be done for a
    single one.
    """
    for first in range(0, len(keys), _MOST_KEYS):
        some = slice(first, first + _MOST_KEYS)
        told = None if groups is None else groups[some]
        yield from _pickled(span, keys[some], values[some], until, name, told)


def _pickled(
    span: tuple[int, int],
    keys: list[Key],
    values: list[Any],
    until: Mapping[Key, int],
    name: str | None,
    groups: list[int] | None,
) -> Iterator[Portion]:
    ends = [*map(until.get, keys)] if until else None
    if PLAIN.issuperset(map(type, values)):
        told = None if groups is None else tuple(groups)
        yield Portion(span, pickle.dumps(keys), pickle.dumps(values), _some(ends), name, told)
        return
    there = [value is not GONE for value in values]
    for is_there in (True, False):
        chosen = [one is is_there for one in there]
        if any(chosen):
            some = [*compress(keys, chosen)]
            known = map(pickled, some, compress(values, chosen), repeat(name))
            yield Portion(
                span,
                pickle.dumps(some),
                tuple(known) if is_there else None,
                None if ends is None else _some([*compress(ends, chosen)]),
                name,
                None if groups is None else tuple(compress(groups, chosen)),
            )


def _some(ends: Sequence[int | None] | None) -> tuple[int | None, ...] | None:
    """None if no key has an end."""
    return tuple(ends) if ends is not None and any(end is not None for end in ends) else None


def portions_from(changes: Iterable[Change]) -> Iterator[Portion]:
    """The same of single keys, each of them once: of each declaration first those that have a value."""
    by_name: dict[str | None, list[Change]] = defaultdict(list)
    for one in sorted(changes, key=_BY_GROUP):
        by_name[one.name].append(one)
    for name, known in by_name.items():
        alive = [one for one in known if one.value is not None]
        gone = [one for one in known if one.value is None]
        for some in (alive, gone):
            for first in range(0, len(some), _MOST_KEYS):
                yield _portion(some[first : first + _MOST_KEYS], name)


def _portion(changes: Sequence[Change], name: str | None) -> Portion:
    keys = pickle.dumps([pickle.loads(one.key) for one in changes])
    values = tuple(one.value for one in changes if one.value is not None) or None
    ends = _some([one.until for one in changes])
    groups = tuple(one.group for one in changes)
    return Portion((min(groups), max(groups)), keys, values, ends, name, groups)


def pickled(key: Key, value: Any, name: str | None = None) -> bytes:
    """A single value."""
    try:
        return pickle.dumps(value)
    except Exception as problem:
        raise NotPicklableError(
            f"the value of {_words(key, name)}, a {type(value).__name__}, cannot be pickled ({problem}); a"
            " class must be defined in a module that workers can import, not in the script that is run"
        ) from problem


def read(key: Key, value: bytes, name: str | None = None) -> Any:
    """The same back."""
    try:
        return pickle.loads(value)
    except Exception as problem:
        raise NotReadableError(
            f"the value of {_words(key, name)} in the commit cannot be read ({type(problem).__name__}:"
            f" {problem}): its class must still be where it was, and read what it wrote; give the declaration"
            " another version= and a migrate= function before you remove it"
        ) from problem


def _words(key: Key, name: str | None) -> str:
    return repr(key if name is None else (name, key))
