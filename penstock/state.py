"""State that a task declares: attributes of its class whose values belong to a key, or to a replica.

Inside `process(item, out)` they are plain attributes: of the key of the item that is at work. An object that
no flow runs has the state of one key, so that it can be called in a unit test as it is.
"""

import copy
from abc import ABC, abstractmethod
from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass
from functools import lru_cache, reduce
from typing import Any, Final, Generic, Literal, NamedTuple, Never, Protocol, TypeVar, overload

from penstock.durations import Duration, format_ms, milliseconds

__all__ = ["Cell", "StateError", "key", "list_of", "map_of", "new", "per_replica", "timer", "value"]

T = TypeVar("T")
K = TypeVar("K")
Method = TypeVar("Method", bound=Callable[..., object])
Migrate = Callable[[Any, int], Any]
Kind = Literal["value", "list", "map", "timer", "per replica"]

HOME: Final = "_penstock_state"
"""The attribute of a task's object that says where its state is."""
PLAIN: Final = frozenset((bool, bytes, float, int, str, type(None)))
"""Types of values that nobody can change in place."""


class StateError(Exception):
    """State is declared or used in a way that cannot work."""


class Home(Protocol):
    """Where the state of an object is."""

    def key(self) -> Hashable:
        """The key that is at work."""

    def read(self, cell: "Cell[Any]") -> Any:
        """The value of a cell, a new one if it has none."""

    def write(self, cell: "Cell[Any]", value: Any) -> None:
        """Give a cell a value."""

    def forget(self, name: str) -> None:
        """A cell has no value any more, a timer no time."""

    def wake(self, name: str, after_ms: float) -> None:
        """A timer has a time, from now on."""

    def is_awake(self, name: str) -> bool:
        """Whether a timer has one."""


@dataclass(frozen=True, slots=True)
class Spec:
    """What was declared, in a form that a graph can hold."""

    name: str
    kind: Kind
    ttl_ms: float | None = None
    change: str = ""
    """What becomes of a value per replica when their number changes."""

    @property
    def words(self) -> str:
        """For people."""
        said: list[str] = [self.kind]
        said += [] if self.ttl_ms is None else [f"{format_ms(self.ttl_ms)} to live"]
        said += [self.change] if self.change else []
        return f"{self.name} ({', '.join(said)})"


class Declared(ABC):
    """An attribute of a class."""

    def __init__(self) -> None:
        self.name = ""

    def __set_name__(self, owner: type, name: str) -> None:
        if self.name not in ("", name):
            raise StateError(f'state "{self.name}" is declared a second time, as "{name}"; declare another')
        self.name = name

    @abstractmethod
    def spec(self) -> Spec | None:
        """What a graph should know of it."""


class Past(NamedTuple):
    """What a declaration was before: its name, and how values of older versions become those of this one."""

    was: str | None = None
    version: int = 1
    migrate: Migrate | None = None


class Cell(Declared, Generic[T]):
    """A value of a key, or of a replica. It is made when it is asked for and not there.

    `kept`: what was made is kept at once, because it may be changed in place.
    """

    def __init__(
        self,
        kind: Kind,
        make: Callable[[], T],
        ttl: Duration | None = None,
        *,
        kept: bool,
        past: "Past | None" = None,
    ) -> None:
        super().__init__()
        self.was, self.version, self.migrate = past or Past()
        if self.version < 1 or (self.version > 1 and self.migrate is None):
            raise StateError(
                f"version={self.version} needs migrate=, a function of a value and the version that it has"
            )
        self.kind: Kind = kind
        self.make = make
        self.kept = kept
        self.ttl_ms = None if ttl is None else milliseconds(ttl)
        self.is_plain = ttl is None and kind == "value" and not kept
        """Whether it is nothing but a value, which begins with one that nobody can change in place."""
        if self.ttl_ms == 0:
            raise StateError(f"ttl: {ttl!r} is zero; it must be longer")

    @overload
    def __get__(self, task: None, owner: type) -> "Cell[T]": ...
    @overload
    def __get__(self, task: object, owner: type) -> T: ...

    def __get__(self, task: object, owner: type) -> "Cell[T] | T":
        if task is None:
            return self
        found: T = _home(task).read(self)
        return found

    def __set__(self, task: object, value: T) -> None:
        _home(task).write(self, value)

    def __delete__(self, task: object) -> None:
        _home(task).forget(self.name)

    def spec(self) -> Spec:
        """Its kind, and how long it lives."""
        return Spec(self.name, self.kind, self.ttl_ms)


class Held(Generic[T]):
    """In place of a cell in the class of an object whose attribute has the value while an item is at work.

    So this is asked where no item is, or where it has deleted the value.
    """

    def __init__(self, cell: Cell[T]) -> None:
        self.cell = cell

    def __get__(self, task: object, owner: type) -> "Cell[T] | T":
        if task is None:
            return self.cell
        _home(task).key()
        return self.cell.make()


class PerReplica(Cell[T]):
    """A value of a replica, with what becomes of it when there are more or fewer of them."""

    def __init__(
        self,
        initial: T,
        merge: Callable[[T, T], T] | None,
        divide: Callable[[T, int], Sequence[T]] | None,
        *,
        copied: bool,
        past: Past | None = None,
    ) -> None:
        super().__init__("per replica", lambda: copy.deepcopy(initial), kept=True, past=past)
        if copied == (merge is not None) or (divide is not None and merge is None):
            raise StateError(
                "per_replica needs merge=, perhaps with divide=; or copied=True, where all have the same"
            )
        self.merge, self.divide = merge, divide

    def spread(self, values: Sequence[T], replicas: int) -> list[T]:
        """The values of so many replicas, from those of the replicas before.

        Fewer: those that are left over are merged into the others, in turn. More: all are merged and then
        divided, or the new ones begin with the initial value if nobody says how to divide.
        """
        if self.merge is None:
            return [copy.deepcopy(values[0]) for _ in range(replicas)]
        if self.divide is not None and replicas > len(values):
            shares = [*self.divide(reduce(self.merge, values), replicas)]
            if len(shares) != replicas:
                raise StateError(f'divide of "{self.name}" made {len(shares)} values for {replicas} replicas')
            return shares
        spread = [*values[:replicas], *(self.make() for _ in range(replicas - len(values)))]
        for number, left in enumerate(values[replicas:]):
            spread[number % replicas] = self.merge(spread[number % replicas], left)
        return spread

    def spec(self) -> Spec:
        """What becomes of it when their number changes."""
        change = "copied" if self.merge is None else "merged" if self.divide is None else "merged or divided"
        return Spec(self.name, self.kind, None, change)


class Key(Declared, Generic[K]):
    """The key that is at work."""

    @overload
    def __get__(self, task: None, owner: type) -> "Key[K]": ...
    @overload
    def __get__(self, task: object, owner: type) -> K: ...

    def __get__(self, task: object, owner: type) -> "Key[K] | K":
        if task is None:
            return self
        found: Any = _home(task).key()
        return found  # type: ignore[no-any-return]

    def __set__(self, task: object, value: Never) -> None:
        raise StateError(f'"{self.name}" is the key of the item; it cannot be changed')

    def spec(self) -> None:
        """It is no state."""


class Timer(Declared):
    """A time at which a method is called for a key, once."""

    def __init__(self, was: str | None = None) -> None:
        super().__init__()
        self.was = was
        self.method = ""

    @overload
    def __get__(self, task: None, owner: type) -> "Timer": ...
    @overload
    def __get__(self, task: object, owner: type) -> "KeyTimer": ...

    def __get__(self, task: object, owner: type) -> "Timer | KeyTimer":
        return self if task is None else KeyTimer(_home(task), self.name)

    def __set__(self, task: object, value: Never) -> None:
        raise StateError(f'"{self.name}" is a timer; set it with .set(...)')

    def fires(self, method: Method) -> Method:
        """The method `method(self, out)` is called when the time has come."""
        self.method = method.__name__
        return method

    def spec(self) -> Spec:
        """Refused here if it calls nothing."""
        if not self.method:
            raise StateError(f'timer "{self.name}" calls nothing; write a method under @{self.name}.fires')
        return Spec(self.name, "timer")


class KeyTimer:
    """The timer of the key that is at work."""

    __slots__ = ("_home", "_name")

    def __init__(self, home: Home, name: str) -> None:
        self._home = home
        self._name = name

    def set(self, after: Duration) -> None:
        """Call its method after this time, and not at the time that was set before."""
        self._home.wake(self._name, _milliseconds(after))

    def cancel(self) -> None:
        """Call nothing."""
        self._home.forget(self._name)

    @property
    def is_set(self) -> bool:
        """Whether something will be called."""
        return self._home.is_awake(self._name)


def value(
    initial: T,
    *,
    ttl: Duration | None = None,
    was: str | None = None,
    version: int = 1,
    migrate: Migrate | None = None,
) -> Cell[T]:
    """A value of each key. It lives for `ttl` from when it was set.

    As everywhere here: `was` is its earlier name, and `migrate(value, version)` makes a value of this
    `version` out of one that a commit has in an older one, or in another kind.

    >>> class Visits:
    ...     count = value(0)
    >>> visits = Visits()
    >>> visits.count += 1
    >>> visits.count
    1
    """
    past = Past(was, version, migrate)
    try:
        hash(initial)
    except TypeError:
        return Cell("value", lambda: copy.deepcopy(initial), ttl, kept=True, past=past)
    return Cell("value", lambda: initial, ttl, kept=False, past=past)


def new(
    make: Callable[[], T],
    *,
    ttl: Duration | None = None,
    was: str | None = None,
    version: int = 1,
    migrate: Migrate | None = None,
) -> Cell[T]:
    """A value of each key, made by `make()`, to be changed in place; it lives for `ttl` from its last use."""
    return Cell("value", make, ttl, kept=True, past=Past(was, version, migrate))


def list_of(
    item: type[T],  # noqa: ARG001 - for types
    *,
    ttl: Duration | None = None,
    was: str | None = None,
    version: int = 1,
    migrate: Migrate | None = None,
) -> Cell[list[T]]:
    """A list of each key. It lives for `ttl` from its last use."""
    return Cell("list", list, ttl, kept=True, past=Past(was, version, migrate))


def map_of(
    key: type[K],  # noqa: ARG001 - for types
    item: type[T],  # noqa: ARG001 - for types
    *,
    ttl: Duration | None = None,
    was: str | None = None,
    version: int = 1,
    migrate: Migrate | None = None,
) -> Cell[dict[K, T]]:
    """A dictionary of each key. It lives for `ttl` from its last use."""
    return Cell("map", dict, ttl, kept=True, past=Past(was, version, migrate))


def key(kind: type[K]) -> Key[K]:  # noqa: ARG001 - for types
    """The key of the item that is at work."""
    return Key()


def timer(*, was: str | None = None) -> Timer:
    """A timer of each key: `self.NAME.set("30 s")` calls the method under `@NAME.fires` after that time."""
    return Timer(was)


def per_replica(
    initial: T,
    *,
    merge: Callable[[T, T], T] | None = None,
    divide: Callable[[T, int], Sequence[T]] | None = None,
    copied: bool = False,
    was: str | None = None,
    version: int = 1,
    migrate: Migrate | None = None,
) -> PerReplica[T]:
    """A value of each replica of a task. When their number changes, values are merged, divided or copied."""
    return PerReplica(initial, merge, divide, copied=copied, past=Past(was, version, migrate))


def declared(body: object) -> tuple[Declared, ...]:
    """What a class, or the class of an object, declares, in the order in which it does."""
    owner = body if isinstance(body, type) else type(body)
    found: dict[str, Declared] = {}
    for base in reversed(owner.__mro__):
        for name, attribute in vars(base).items():
            found.pop(name, None)
            part = attribute.cell if isinstance(attribute, Held) else attribute
            if isinstance(part, Declared):
                found[name] = part
    return tuple(found.values())


def _home(task: object) -> Home:
    try:
        home: Home = task.__dict__[HOME]
    except KeyError:
        home = task.__dict__[HOME] = _Alone()
    return home


class _Alone:
    """The state of an object that no flow runs: one key, and timers that never fire."""

    def __init__(self) -> None:
        self._values: dict[str, Any] = {}

    def key(self) -> Hashable:
        return None

    def read(self, cell: Cell[Any]) -> Any:
        if cell.name in self._values:
            return self._values[cell.name]
        made = cell.make()
        if cell.kept:
            self._values[cell.name] = made
        return made

    def write(self, cell: Cell[Any], value: Any) -> None:
        self._values[cell.name] = value

    def forget(self, name: str) -> None:
        self._values.pop(name, None)

    def wake(self, name: str, after_ms: float) -> None:
        self._values[name] = after_ms

    def is_awake(self, name: str) -> bool:
        return name in self._values


_milliseconds = lru_cache(maxsize=100)(milliseconds)
