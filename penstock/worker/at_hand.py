"""Values of the key that is at work, as attributes of the task's object like all others.

To read and write a value or two is most of what many tasks do for an item. So values that nobody can change
in place are taken out of the state when an item comes, and put back when it is done if they are others then.
What is between costs what an attribute does.
"""

from collections.abc import Hashable, Mapping, Set
from typing import Any, Final

from penstock.epochs.portions import GONE
from penstock.epochs.state import STRETCH, KeyedState, Shelf, not_owned
from penstock.state import PLAIN, Cell, Held, StateError

_MADE: Final = "_penstock_at_hand"
"""An attribute of the classes that are made here."""


def at_hand(task: str, body: Any, cells: Mapping[Cell[Any], KeyedState]) -> "AtHand | None":
    """From now on cells of this object are ordinary attributes; None if there are none that can be."""
    if not cells:
        return None
    kind = type(body)
    if not hasattr(kind, _MADE):
        shown = {"__module__": kind.__module__, "__qualname__": kind.__qualname__, _MADE: True}
        held = {cell.name: Held(cell) for cell in cells}
        try:
            body.__class__ = type(kind.__name__, (kind,), {**shown, **held})
        except TypeError:  # its memory is laid out in a way that no other class shares
            return None
    return AtHand(task, body, cells)


class AtHand:
    """Those of one object; `cells` are kept in these states, which own the same groups."""

    def __init__(self, task: str, body: Any, cells: Mapping[Cell[Any], KeyedState]) -> None:
        self._task = task
        self._attributes: dict[str, Any] = body.__dict__
        self._cells: tuple[tuple[str, Any, dict[int, Shelf]], ...] = tuple(
            (cell.name, cell.make(), state.shelves) for cell, state in cells.items()
        )
        self._groups: Set[int] = next(iter(cells.values())).groups

    def take(self, key: Hashable, group: int) -> None:
        """An item of this key comes."""
        if group not in self._groups:
            raise not_owned(key, group)
        stretch, attributes = group // STRETCH, self._attributes
        for name, first, shelves in self._cells:
            attributes[name] = shelves[stretch].values.get(key, first)

    def put_back(self, key: Hashable, group: int) -> None:
        """It is done. What is there can only have been changed in place if its type is not plain."""
        stretch, attributes = group // STRETCH, self._attributes
        for name, first, shelves in self._cells:
            values, touched = shelves[stretch]
            now = attributes.get(name, GONE)
            if now is values.get(key, first) and (type(now) in PLAIN or now is first):
                continue
            if now is GONE:
                values.pop(key, None)
            else:
                values[key] = now
            if touched is not None:
                touched[key] = now

    def put_down(self) -> None:
        """No item is at work."""
        for name, _, _ in self._cells:
            self._attributes.pop(name, None)

    def refuse_others(self) -> None:
        """What was set where no item is at work belongs to no key."""
        for name, _, _ in self._cells:
            if name in self._attributes:
                del self._attributes[name]
                raise StateError(f'task "{self._task}": "{name}" was set where no item is at work: there is no key')
