"""Who holds how many of Spark's task slots: several flows may share one session, none may take another's."""

import threading

from penstock.flow.errors import FlowError


class SlotBook:
    """The slots that the flows of this process hold."""

    def __init__(self) -> None:
        self._held: dict[str, tuple[str, int]] = {}
        self._lock = threading.Lock()

    def claim(self, run: str, flow: str, slots: int, all_slots: int, needed_by: str) -> "Claim":
        """Slots for a flow, or a refusal that says who has them."""
        with self._lock:
            taken = sum(held for _, held in self._held.values())
            if slots > all_slots - taken:
                holders = ", ".join(f'{held} by flow "{name}"' for name, held in self._held.values())
                raise FlowError(
                    f"{needed_by}: {slots} task slots at the same time, but of Spark's {all_slots} there are"
                    f" {taken} held ({holders}); start Spark with room for all flows before the first,"
                    f" penstock.session(slots={taken + slots}), or run this one in a process of its own"
                )
            self._held[run] = (flow, slots)
        return Claim(self, run, flow, all_slots)

    def others(self, run: str) -> int:
        """Slots that other flows hold."""
        with self._lock:
            return sum(held for name, (_, held) in self._held.items() if name != run)

    def hold(self, run: str, flow: str, slots: int) -> None:
        """Note that a flow holds so many from now on."""
        with self._lock:
            self._held[run] = (flow, slots)

    def free(self, run: str) -> None:
        """A flow is over."""
        with self._lock:
            self._held.pop(run, None)


BOOK = SlotBook()
"""Of this process: it has one Spark at a time."""


class Claim:
    """What one flow holds."""

    def __init__(self, book: SlotBook, run: str, flow: str, all_slots: int) -> None:
        self._book = book
        self._run = run
        self._flow = flow
        self._all_slots = all_slots

    @property
    def most(self) -> int:
        """As many as the flow may take now: all that no other flow holds."""
        return self._all_slots - self.others

    @property
    def others(self) -> int:
        """Slots that other flows hold."""
        return self._book.others(self._run)

    def hold(self, slots: int) -> None:
        """The flow has another layout."""
        self._book.hold(self._run, self._flow, slots)

    def free(self) -> None:
        """The flow is over."""
        self._book.free(self._run)
