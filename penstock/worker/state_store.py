"""The declared state of a replica (penstock/state.py), in the memory of its worker.

Each declaration has a dictionary of its own, by key; so has a timer, whose values are times. An item
that fails leaves the state as it found it, where the flow goes on without it or it is tried again.
"""

from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, Final

from penstock.epochs.alarms import Alarms
from penstock.epochs.portions import GONE, Portion
from penstock.epochs.state import STRETCH, Handed, KeyedState, Shelf, not_owned
from penstock.flow.graph import Graph, Task
from penstock.state import HOME, PLAIN, Cell, Declared, PerReplica, StateError, Timer, declared
from penstock.wire.keys import KEY_GROUPS, key_group
from penstock.worker.at_hand import are_attributes, as_declared
from penstock.worker.context import Context

_NS_PER_MS: Final = 1_000_000
_ELSEWHERE: Final = Shelf({}, None, frozenset())
"""In place of a stretch of which nothing is here."""
_NOTHING: Final = object()
"""In place of a key, where no item is at work; and of a value."""

Handover = Mapping[str, Handed]
"""By what was declared."""


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
        self._with_end = [p.name for p in parts if isinstance(p, Cell) and p.ttl_ms is not None]
        self.undoes = task.on_error != "fail" or task.retries is not None
        self._tracked = ahead_ns is not None
        self._body: Any = None
        self.at: Hashable = _NOTHING
        self.group = self._of_replica
        self._attributes: dict[str, Any] = {}
        self._plain: list[Cell[Any]] = []
        """What is an attribute while an item is at work; nothing where an item may have to be undone."""
        self._at_hand: tuple[tuple[str, Any, dict[int, Shelf]], ...] = ()
        """The same by name, first value, and where it is kept."""
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
        state, key = self._states[cell.name], self._key_of(cell.name)
        found = state.get(key, _NOTHING)
        if found is _NOTHING:
            found = cell.make()
            if not cell.kept:
                return found
        elif cell.ttl_ms is None or not cell.kept:
            return found
        state.put(key, found, self._until(cell))
        return found

    def write(self, cell: Cell[Any], value: Any) -> None:
        """Give a cell a value."""
        self._states[cell.name].put(self._key_of(cell.name), value, self._until(cell))

    def forget(self, name: str) -> None:
        """A cell has no value any more, a timer no time."""
        self._states[name].remove(self._key_of(name))

    def wake(self, name: str, after_ms: float) -> None:
        """A timer has a time, from now on."""
        key, due_ns = self.key(), self._time_ns() + round(after_ms * _NS_PER_MS)
        self._states[name].put(key, due_ns)
        self._alarms.set((name, key), due_ns)

    def is_awake(self, name: str) -> bool:
        """Whether a timer has one."""
        return self._states[name].get(self.key()) is not None

    # What its runner does

    def bind(self, body: Any) -> "Stateful":
        """The state of this object is here; what to call in place of its methods."""
        body.__dict__[HOME] = self
        self._body = as_declared(body)
        self._attributes = body.__dict__
        plain = [part for part in self.parts if isinstance(part, Cell) and part.is_plain]
        if plain and not self.undoes and are_attributes(body, plain):
            self._plain = plain
        self._lay_out()
        return Stateful(self, body)

    def _lay_out(self) -> None:
        self._at_hand = tuple(
            (part.name, part.make(), self._states[part.name].shelves) for part in self._plain
        )

    def around(self, work: Callable[[Any, Any], None]) -> Callable[..., None]:
        """What to call in place of a method that takes an item: what it reads and writes is of its key."""
        if self.undoes:
            return self._carefully(work)
        if len(self._at_hand) == 1 and not self._with_end:
            return self._with_one_at_hand(work)

        def quickly(item: Any, out: Any = None) -> None:
            self._turn_to(item)
            work(item, out)
            self._done()

        return quickly

    def _carefully(self, work: Callable[[Any, Any], None]) -> Callable[..., None]:
        def carefully(item: Any, out: Any = None) -> None:
            self._turn_to(item)
            with self._undone():
                work(item, out)

        return carefully

    def _with_one_at_hand(self, work: Callable[[Any, Any], None]) -> Callable[..., None]:
        """What `_turn_to` and `_done` do, without calls and loops: half of what state takes for an item."""
        keys, context = self._keys, self._context

        def quickly(item: Any, out: Any = None) -> None:
            key = self.at = keys[context.input](item)  # type: ignore[index] # an item comes by a stream
            group = self.group = key_group(key)
            ((name, first, shelves),) = self._at_hand
            values, touched, mine = shelves.get(group // STRETCH) or _ELSEWHERE
            if mine is not None and group not in mine:
                raise not_owned(key, group)
            attributes = self._attributes
            was = attributes[name] = values.get(key, first)
            work(item, out)
            now = attributes.get(name, GONE)
            if now is was and (type(now) in PLAIN or now is first):
                return
            if now is GONE:
                values.pop(key, None)
            else:
                values[key] = now
            if touched is not None:
                touched[key] = now

        return quickly

    def _turn_to(self, item: Any) -> None:
        """This item is at work. By a stream without a key it comes only to tasks without state of keys."""
        key_of = self._keys.get(self._context.input)  # type: ignore[arg-type] # an item comes by a stream
        if key_of is None:
            self.leave()
        else:
            self._turn_to_key(key_of(item))

    def _turn_to_key(self, key: Hashable) -> None:
        """Of this key is what the task reads and writes from now on."""
        self.at = key
        group = self.group = key_group(key)
        if self._with_end:
            now_ns = self._time_ns()
            for name in self._with_end:
                self._states[name].expire(now_ns)
        attributes = self._attributes
        for name, first, shelves in self._at_hand:
            values, _, mine = shelves.get(group // STRETCH) or _ELSEWHERE
            if mine is not None and group not in mine:
                raise not_owned(key, group)
            attributes[name] = values.get(key, first)

    def _done(self) -> None:
        """The task has done what it does for an item, or for a timer of a key.

        Only what is not of a plain type can have been changed in place.
        """
        key, attributes = self.at, self._attributes
        for name, first, shelves in self._at_hand if key is not _NOTHING else ():
            values, touched, _ = shelves[self.group // STRETCH]
            now = attributes.get(name, GONE)
            if now is values.get(key, first) and (type(now) in PLAIN or now is first):
                continue
            if now is GONE:
                values.pop(key, None)
            else:
                values[key] = now
            if touched is not None:
                touched[key] = now

    @contextmanager
    def _undone(self) -> Iterator[None]:
        """What is written inside counts if nothing raises."""
        states = self._states.values()
        for state in states:
            state.remember()
        try:
            yield
        except BaseException:
            for state in states:
                state.undo()
            raise
        finally:
            for state in states:
                state.keep()

    def leave(self) -> None:
        """No item is at work."""
        self.at = _NOTHING
        self.group = self._of_replica
        for name, _, _ in self._at_hand:
            self._attributes.pop(name, None)

    @contextmanager
    def between_items(self) -> Iterator[None]:
        """The task is called, and no item is at work."""
        self.leave()
        yield
        for name, _, _ in self._at_hand:
            if name in self._attributes:
                del self._attributes[name]
                raise StateError(
                    f'task "{self._task}": "{name}" was set where no item is at work, so there is no key;'
                    " state of a key is for process(...), write(...) and what a timer of a key calls"
                )

    @property
    def next_timer_ns(self) -> int | None:
        """When to look for timers again."""
        return None if self._alarms.next is None else self._alarms.next - self._ahead_ns

    def due(self) -> list[tuple[str, Callable[[Any], None]]]:
        """The timers whose time has come: what is called, in words, and the call."""
        alarms = self._alarms.due(self._time_ns(), self._time_of)
        return [(f"{self._timers[alarm[0]]}()", self._firing(alarm)) for alarm in alarms]  # type: ignore[index]

    # When replicas change

    def clear(self) -> None:
        """All groups are here, and nothing is known of them."""
        self.leave()
        self._alarms = Alarms()
        self._of_keys: dict[str, KeyedState] = {}
        self._states: dict[str, KeyedState] = {}
        for part in self.parts:
            if isinstance(part, PerReplica):
                self._states[part.name] = self._new(part, [self._of_replica], lambda _: self._of_replica)
            elif isinstance(part, Cell | Timer):
                self._states[part.name] = self._new(part, range(KEY_GROUPS), self._group_of)
                self._of_keys[part.name] = self._states[part.name]
        self._lay_out()

    def _new(self, part: Declared, groups: Iterable[int], group_of: Callable[[Hashable], int]) -> KeyedState:
        return KeyedState(groups, group_of, name=part.name, tracked=self._tracked, tells_groups=False)

    def own_only(self, groups: Sequence[int]) -> None:
        """The other groups are of other replicas; at first all are here."""
        self.leave()
        for state in self._of_keys.values():
            state.own_only(groups)

    def hand_over(self, groups: Sequence[int]) -> Handover:
        """Give groups away."""
        self.leave()
        return {name: state.hand_over(groups) for name, state in self._of_keys.items()}

    def take_over(self, handed: Handover) -> None:
        """Own groups that another replica had."""
        for name, state in self._of_keys.items():
            state.take_over(handed[name])
        self._set_alarms()

    def drop(self, groups: Iterable[int]) -> None:
        """Give groups away that are in files as they are."""
        self.leave()
        leaving = [*groups]
        for state in self._of_keys.values():
            state.drop(leaving)

    def own_more(self, groups: Iterable[int]) -> None:
        """Own groups that another replica had: what files have of them is to be taken in before any item."""
        self.leave()
        coming = [*groups]
        for state in self._of_keys.values():
            state.own_more(coming)

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
        return [portion for state in self._states.values() for portion in state.take_changes()]

    def everything(self, groups: Sequence[int] | None = None) -> list[Portion]:
        """All that is known, of these groups or of all."""
        self.leave()
        return [portion for state in self._states.values() for portion in state.everything(groups)]

    def apply(self, portions: Iterable[Portion]) -> None:
        """Take in what files have of the groups that are here."""
        for portion in portions:
            self.apply_part(portion)
        self.end_apply()

    def apply_part(self, portion: Portion) -> None:
        """Some of that, while items of other groups are worked on."""
        assert portion.name in self._states, "what is declared no more was dropped, or refused at the start"
        self._states[portion.name].apply((portion,))

    def end_apply(self) -> None:
        """That was all. What is declared to live for ever does so now."""
        for name, state in self._states.items():
            if name not in self._with_end:
                state.forget_ends()
        self._set_alarms()

    def apply_of_replicas(self, portions: Iterable[Portion], before: int, now: int) -> None:
        """The same for values that belonged to replicas, of which there was another number."""
        values: dict[str | None, list[Any]] = {}
        for portion in portions:
            for group, _, value, _ in portion.entries(range(-before, 0)):
                values.setdefault(portion.name, [GONE] * before)[-1 - group] = value
        for name, cell in self._replicated.items():
            known = [cell.make() if value is GONE else value for value in values.get(name, [])]
            if known:
                self.write(cell, cell.spread(known, now)[self._context.replica])

    def _set_alarms(self) -> None:
        for name in self._timers:
            for key, due_ns in self._states[name].items():
                self._alarms.set((name, key), due_ns)

    def _time_ns(self) -> int:
        """By the clock of times that are part of the state."""
        return self._now_ns() + self._ahead_ns

    def _key_of(self, name: str) -> Hashable:
        return None if name in self._replicated else self.key()

    def _until(self, cell: Cell[Any]) -> int | None:
        return None if cell.ttl_ms is None else self._time_ns() + round(cell.ttl_ms * _NS_PER_MS)

    def _time_of(self, alarm: Any) -> int | None:
        """Of a timer; None if it was cancelled, or is with another replica now."""
        name, key = alarm
        state = self._states[name]
        if self._group_of(key) not in state.groups:
            return None
        due_ns: int | None = state.get(key)
        return due_ns

    def _firing(self, alarm: Any) -> Callable[[Any], None]:
        name, key = alarm

        def fire(out: Any) -> None:
            self._turn_to_key(key)
            state = self._states[name]
            due_ns = state.get(key)
            if due_ns is not None and due_ns <= self._time_ns():
                state.remove(key)
                getattr(self._body, self._timers[name])(out)
            self._done()
            self.leave()

        return fire

    def _group_of(self, key: Hashable) -> int:
        return self.group if key is self.at else key_group(key)


class Stateful:
    """The body of a task, with the state of its item at hand: what it has of these two methods."""

    __slots__ = ("process", "write")

    process: Callable[[Any, Any], None]
    """Take an item, and send what comes of it."""
    write: Callable[[Any], None]
    """Take an item."""

    def __init__(self, store: StateStore, body: Any) -> None:
        if (process := getattr(body, "process", None)) is not None:
            self.process = store.around(process)
        if (write := getattr(body, "write", None)) is not None:
            self.write = store.around(lambda item, _: write(item))


def store_of(
    graph: Graph, task: Task, context: Context, now_ns: Callable[[], int], *, ahead_ns: int | None = None
) -> StateStore | None:
    """For the state of a task; None if it declares none."""
    if not task.state:
        return None
    keys = {s.name: s.key for s in graph.inputs_of(task.name) if s.wiring == "key" and callable(s.key)}
    return StateStore(task, declared(task.body), keys, context, now_ns, ahead_ns=ahead_ns)
