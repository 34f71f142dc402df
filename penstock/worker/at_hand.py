"""Values of the key that is at work, as attributes of the task's object like all others.

To read and write a value or two is most of what many tasks do for an item. So values that nobody can change
in place are taken out of the state when an item comes (state_store.py), and put back when it is done if they
are others then. What is between costs what an attribute does.
"""

from collections.abc import Sequence
from typing import Any, Final

from penstock.state import Cell, Held

_MADE: Final = "_penstock_at_hand"
"""An attribute of the classes that are made here."""


def as_declared(body: Any) -> Any:
    """An object that was bound before has the class again that it began with."""
    if hasattr(body, _MADE):
        body.__class__ = type(body).__mro__[1]
    return body


def are_attributes(body: Any, cells: Sequence[Cell[Any]]) -> bool:
    """Make these cells of an object ordinary attributes, by a class below its own. False if it cannot be."""
    kind = type(body)
    shown = {"__module__": kind.__module__, "__qualname__": kind.__qualname__, _MADE: True}
    held = {cell.name: Held(cell) for cell in cells}
    try:
        body.__class__ = type(kind.__name__, (kind,), {**shown, **held})
    except Exception:  # noqa: BLE001 - its class may refuse to have one below it, or its memory another class
        return False
    return True
