"""What people most often do with the items of a key, as tasks with declared state.

A class is made for each task: its state depends on what the user gave.
"""

from collections.abc import Callable
from typing import Any, TypeVar

from penstock import state
from penstock.flow.typed import Item, Made, Out, Processes

Kept = TypeVar("Kept")


def count() -> Processes[Any, tuple[Any, int]]:
    """(key, how many so far) for each item."""

    class Count:
        __name__ = "count"
        by = state.key(object)
        seen = state.value(0)

        def process(self, item: Any, out: Out[tuple[Any, int]]) -> None:  # noqa: ARG002 - it counts
            self.seen += 1
            out((self.by, self.seen))

    return Count()


def reduced(function: Callable[[Item, Item], Item]) -> Processes[Item, tuple[Any, Item]]:
    """(key, what the function makes of all items so far) for each item."""

    class Reduce:
        __name__ = "reduce"
        by = state.key(object)
        made: state.Cell[tuple[Item] | None] = state.value(None)

        def process(self, item: Item, out: Out[tuple[Any, Item]]) -> None:
            before = self.made
            made = item if before is None else function(before[0], item)
            self.made = (made,)
            out((self.by, made))

    return Reduce()


def scan(function: Callable[[Kept, Item], tuple[Kept, Made]], initial: Kept) -> Processes[Item, Made]:
    """What the function makes of the state of a key and an item, beside the next state."""

    class Scan:
        __name__ = "scan"
        known = state.value(initial)

        def process(self, item: Item, out: Out[Made]) -> None:
            answer = function(self.known, item)
            if not isinstance(answer, tuple) or len(answer) != 2:
                raise TypeError(
                    f"the function of scan must return (state, output), not {type(answer).__name__}"
                )
            self.known = answer[0]
            out(answer[1])

    return Scan()


def distinct(within_ms: float) -> Processes[Item, Item]:
    """The first item of a key in a time."""

    class Distinct:
        __name__ = "distinct"
        is_known = state.value(initial=False, ttl=within_ms / 1000)

        def process(self, item: Item, out: Out[Item]) -> None:
            if not self.is_known:
                self.is_known = True
                out(item)

    return Distinct()
