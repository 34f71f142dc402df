"""The declared state of a replica (penstock/state.py), in the memory of its worker.

Every cell of a key is an entry of its own, by (name, key); so is a timer, whose value is its time. An item
that fails leaves the state as it found it, where the flow goes on without it or it is tried again.
"""

from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from contextlib import AbstractContextManager
from typing import Any, Final

from penstock.epochs.alarms import Alarms
from penstock.epochs.portions import Portion
from penstock.epochs.state import Handed, KeyedState
from penstock.flow.graph import Graph, Task
from penstock.state import HOME, PLAIN, Cell, Declared, PerReplica, StateError, Timer, Touched, declared
from penstock.wire.keys import KEY_GROUPS, key_group
from penstock.worker.context import Context

_NS_PER_MS: Final = 1_000_000
_NOTHING: Final = object()
"""In place of a key, where no item is at work; and of a value."""

Entry = tuple[str, Hashable]


class StateStore:
    """What `penstock.state.Home` promises, for the replica of a task; `keys` are the keys of its inputs."""

    def __init__(
        self,
        task: Task,
        parts: Iterable[Declared],
        keys: Mapping[str, Callable[[Any], Hashable]],
        context: Context,
        now_ns: Callable[[], int],
        *,
        ahead_ns: int | None = None,
    ) -> None:
        """`ahead_ns`: by how much times in the state are ahead of the clock; None if nothing is committed."""
        self.parts = parts = tuple(parts)
        self._ahead_ns = ahead_ns or 0
        self._of_replica = -1 - context.replica
        self._task = task.name
        self._keys = keys
        self._context = context
        self._now_ns = now_ns
        self._timers = {part.name: part.method for part in parts if isinstance(part, Timer)}
        self._replicated = {part.name: part for part in parts if isinstance(part, PerReplica)}
        self._with_end = {p.name for p in parts if isinstance(p, Cell) and p.ttl_ms is not None}
        self.undoes = task.on_error != "fail" or task.retries is not None
        self._tracked = ahead_ns is not None
        self.at: Hashable = _NOTHING
        self.group = self._of_replica
        # Of the group of the key that is at work, for cells without an end: the way of most of them.
        self.values: dict[Any, Any] | None = None
        self.touched: Touched | None = None
        self._windows: dict[int, tuple[dict[Any, Any], Touched | None]] = {}
        self.clear()

    # What the task sees

    def key(self) -> Hashable:
        """The key that is at work."""
        if self.at is _NOTHING:
            raise StateError(
                f'task "{self._task}": no item is at work here, so there is no key; state of a key is for'
                " process(...), write(...) and what a timer of a key calls"
            )
        return self.at

    def read(self, cell: Cell[Any]) -> Any:
        """The value of a cell, a new one if it has none."""
        values = self.values
        if values is not None and cell.is_plain:
            entry = (cell.name, self.at)
            found = values.get(entry, _NOTHING)
            if found is not _NOTHING:
                if self.touched is not None and type(found) not in PLAIN:
                    self.touched.note(self.group, entry, found)  # it may be changed in place
                return found
        entry = self._entry(cell.name)
        found = self._state.get(entry, _NOTHING)
        if found is _NOTHING:
            found = cell.make()
            if not cell.kept:
                return found
        elif cell.ttl_ms is None or not cell.kept:
            return found
        self._state.put(entry, found, self._until(cell))
        return found

    def write(self, cell: Cell[Any], value: Any) -> None:
        """Give a cell a value. Those that are plain mostly do that by themselves."""
        self._state.put(self._entry(cell.name), value, self._until(cell))

    def forget(self, name: str) -> None:
        """A cell has no value any more, a timer no time."""
        self._state.remove(self._entry(name))

    def wake(self, name: str, after_ms: float) -> None:
        """A timer has a time, from now on."""
        entry, due_ns = self._entry(name), self._time_ns() + round(after_ms * _NS_PER_MS)
        self._state.put(entry, due_ns)
        self._alarms.set(entry, due_ns)

    def is_awake(self, name: str) -> bool:
        """Whether a timer has one."""
        return self._state.get(self._entry(name)) is not None

    # What its runner does

    def bind(self, body: Any) -> "Stateful":
        """The state of this object is here; what to call in place of its methods."""
        body.__dict__[HOME] = self
        self._body = body
        return Stateful(self, body)

    def turn_to(self, item: Any) -> None:
        """This item is at work. By a stream without a key it comes only to tasks without state of keys."""
        key_of = self._keys.get(self._context.input)  # type: ignore[arg-type] # an item comes by a stream
        if key_of is None:
            self.leave()
            return
        key = self.at = key_of(item)
        group = self.group = key_group(key)
        window = self._windows.get(group)
        if window is None:
            self._turn_to(key)
        else:
            self.values, self.touched = window

    def undone(self) -> AbstractContextManager[None]:
        """What is written inside counts if nothing raises."""
        return self._state.item()

    def leave(self) -> None:
        """No item is at work."""
        self.at = _NOTHING
        self.group = self._of_replica
        self.values = None

    def _close_windows(self) -> None:
        """What was looked into is done with: groups change hands."""
        self._windows = {}
        self.leave()

    @property
    def next_timer_ns(self) -> int | None:
        """When to look for timers again."""
        return None if self._alarms.next is None else self._alarms.next - self._ahead_ns

    def due(self) -> list[tuple[str, Callable[[Any], None]]]:
        """The timers whose time has come: what is called, in words, and the call."""
        entries = self._alarms.due(self._time_ns(), self._time_of)
        return [(f"{self._timers[entry[0]]}()", self._firing(entry)) for entry in entries]  # type: ignore[index]

    # When replicas change

    def clear(self) -> None:
        """All groups are here, and nothing is known of them."""
        self._close_windows()
        self._alarms = Alarms()
        groups = [self._of_replica, *range(KEY_GROUPS)]
        self._state = KeyedState(groups, self._group_of, tracked=self._tracked)

    def own_only(self, groups: Sequence[int]) -> None:
        """The other groups are of other replicas; at first all are here."""
        self._close_windows()
        self._state.own_only([self._of_replica, *groups])

    def hand_over(self, groups: Sequence[int]) -> Handed:
        """Give groups away."""
        self._close_windows()
        return self._state.hand_over(groups)

    def take_over(self, handed: Handed) -> None:
        """Own groups that another replica had."""
        self._state.take_over(handed)
        self._set_alarms()

    def drop(self, groups: Iterable[int]) -> None:
        """Give groups away that are in files as they are."""
        self._close_windows()
        self._state.drop(groups)

    def own_more(self, groups: Iterable[int]) -> None:
        """Own groups that another replica had: what files have of them is to be taken in before any item."""
        self._close_windows()
        self._state.own_more(groups)

    @property
    def replicated(self) -> Mapping[str, PerReplica[Any]]:
        """The values that belong to the replica, by name."""
        return self._replicated

    def of_replica(self, name: str) -> Any:
        """One of them."""
        return self.read(self._replicated[name])

    def set_of_replica(self, name: str, value: Any) -> None:
        """Give it another value."""
        self.write(self._replicated[name], value)

    # Commits

    def take_changes(self) -> list[Portion]:
        """What has changed since the last call."""
        self.leave()
        return self._state.take_changes()

    def everything(self, groups: Sequence[int] | None = None) -> list[Portion]:
        """All that is known, of these groups or of all."""
        self.leave()
        return self._state.everything(groups)

    def apply(self, portions: Iterable[Portion]) -> None:
        """Take in what files have of the groups that are here."""
        self._state.apply(portions)
        self.end_apply()

    def apply_part(self, portion: Portion) -> None:
        """Some of that, while items of other groups are worked on."""
        self._state.apply((portion,))

    def end_apply(self) -> None:
        """That was all."""
        self._state.end_only(lambda entry: entry[0] in self._with_end)  # type: ignore[index]
        self._set_alarms()

    def apply_of_replicas(self, portions: Iterable[Portion], before: int, now: int) -> None:
        """The same for values that belonged to replicas, of which there was another number."""
        portions = [*portions]
        values: dict[str, list[Any]] = {}
        for replica in range(before):
            found = KeyedState([-1 - replica])
            found.apply(portions)
            for entry, value in found.items():
                values.setdefault(entry[0], [_NOTHING] * before)[replica] = value  # type: ignore[index]
        for name, cell in self._replicated.items():
            known = [cell.make() if value is _NOTHING else value for value in values.get(name, [])]
            if known:
                self.write(cell, cell.spread(known, now)[self._context.replica])

    def _set_alarms(self) -> None:
        if not self._timers:
            return
        for entry, value in self._state.items():
            if entry[0] in self._timers:  # type: ignore[index]
                self._alarms.set(entry, value)

    def _time_ns(self) -> int:
        """By the clock of times that are part of the state."""
        return self._now_ns() + self._ahead_ns

    def _entry(self, name: str) -> Entry:
        return (name, None) if name in self._replicated else (name, self.key())

    def _until(self, cell: Cell[Any]) -> int | None:
        return None if cell.ttl_ms is None else self._time_ns() + round(cell.ttl_ms * _NS_PER_MS)

    def _turn_to(self, key: Hashable) -> None:
        """Of this key is what the task reads and writes from now on."""
        self.at = key
        group = self.group = key_group(key)
        if self._with_end:
            self._state.expire(self._time_ns())
        window = None if self.undoes else self._state.window(group)
        if window is None:
            self.values = None
            return
        self.values, self.touched = window
        if not self._with_end:  # else something may expire with each item
            self._windows[group] = window

    def _time_of(self, entry: Any) -> int | None:
        """Of a timer; None if it was cancelled, or is with another replica now."""
        if not self._state.owns(self._group_of(entry)):
            return None
        due_ns: int | None = self._state.get(entry)
        return due_ns

    def _firing(self, entry: Any) -> Callable[[Any], None]:
        name, key = entry

        def fire(out: Any) -> None:
            self._turn_to(key)
            due_ns = self._state.get(entry)
            if due_ns is not None and due_ns <= self._time_ns():
                self._state.remove(entry)
                getattr(self._body, self._timers[name])(out)
            self.leave()

        return fire

    def _group_of(self, entry: Any) -> int:
        name, key = entry
        if name in self._replicated:
            return self._of_replica
        return self.group if key is self.at else key_group(key)


class Stateful:
    """The body of a task, with the state of its item at hand."""

    __slots__ = ("_process", "_store", "_turn_to", "_undoes", "_write")

    def __init__(self, store: StateStore, body: Any) -> None:
        self._store = store
        self._turn_to = store.turn_to
        self._undoes = store.undoes
        self._process = getattr(body, "process", None)
        self._write = getattr(body, "write", None)

    def process(self, item: Any, out: Any) -> None:
        """Take an item, and send what comes of it."""
        assert self._process is not None, "it has been looked at when the flow was declared"
        self._turn_to(item)
        if self._undoes:
            with self._store.undone():
                self._process(item, out)
        else:
            self._process(item, out)

    def write(self, item: Any) -> None:
        """Take an item."""
        assert self._write is not None, "it has been looked at when the flow was declared"
        self._turn_to(item)
        if self._undoes:
            with self._store.undone():
                self._write(item)
        else:
            self._write(item)


def store_of(
    graph: Graph, task: Task, context: Context, now_ns: Callable[[], int], *, ahead_ns: int | None = None
) -> StateStore | None:
    """For the state of a task; None if it declares none."""
    if not task.state:
        return None
    keys = {s.name: s.key for s in graph.inputs_of(task.name) if s.wiring == "key" and callable(s.key)}
    return StateStore(task, declared(task.body), keys, context, now_ns, ahead_ns=ahead_ns)
