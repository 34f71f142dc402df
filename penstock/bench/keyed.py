"""What the flows of benches `state` and `commit` are made of: items with keys, and tasks that count them.

No NumPy and no Spark here: workers import this module.
"""

from collections.abc import Callable
from typing import Any, Final

import penstock
from penstock import state
from penstock.testing.ledger import Ledger, Stamped

KEYS: Final = 100_000
LIFETIME: Final = "20 ms"
RECORD_BYTES: Final = 100
_STEP: Final = 7919
"""Consecutive items have keys that are far apart; a prime, so that all keys come before one comes again."""
_FILLED: Final = -1
_COUNT_BYTES: Final = 8


def number_of(index: Any, keys: int) -> Any:
    """The number of the key of an item, or of many."""
    return index * _STEP % keys


def key_text(number: int) -> str:
    """The key itself."""
    return f"key {number}"


def made(partition: int, index: int, seed: int) -> str:  # noqa: ARG001 - what a source is asked for
    """An item that is nothing but its key."""
    return key_text(number_of(index, KEYS))


def itself(item: str) -> str:
    """The key of such an item."""
    return item


def key_of(item: Stamped) -> str:
    """The key of an item whose arrival is noted."""
    return key_text(number_of(item[1], KEYS))


def one_of(keys: int) -> Callable[[Stamped], str]:
    """The same among another number of keys."""

    def key(item: Stamped) -> str:
        return key_text(number_of(item[1], keys))

    return key


def filling(partition: int, index: int, seed: int) -> Stamped:  # noqa: ARG001 - what a source is asked for
    """An item that only makes its key known."""
    return _FILLED, index, 0, 0, None


class Declared:
    """Counts in declared state."""

    seen = state.value(0)

    def process(self, item: str, out: penstock.Out[int]) -> None:  # noqa: ARG002 - what a task is given
        """One more of its key."""
        self.seen += 1
        out(self.seen)


class Attribute:
    """Counts in a dictionary of its own, which no commit has."""

    def __init__(self) -> None:
        self.seen: dict[str, int] = {}

    def process(self, item: str, out: penstock.Out[int]) -> None:
        """One more of its key."""
        count = self.seen[item] = self.seen.get(item, 0) + 1
        out(count)


class Counted:
    """Counts in declared state, and passes the item on."""

    seen = state.value(0)

    def process(self, item: Stamped, out: penstock.Out[Stamped]) -> None:
        """One more of its key."""
        self.seen += 1
        out(item)


class Kept:
    """A record of 100 bytes for each key, which begins with a count; items tell which replica they met."""

    record = state.value(b"")

    def __init__(self) -> None:
        self.replica = -1

    def open(self, context: Any) -> None:
        """In a worker."""
        self.replica = context.replica

    def process(self, item: Stamped, out: penstock.Out[Stamped]) -> None:
        """One more of its key."""
        count = counted(self.record) + 1
        self.record = count.to_bytes(_COUNT_BYTES, "big") + bytes(RECORD_BYTES - _COUNT_BYTES)
        partition, index, due_ns, _, payload = item
        if partition != _FILLED:
            out((partition, index, due_ns, self.replica, payload))


def counted(record: bytes) -> int:
    """How often a key was seen, by its record."""
    return int.from_bytes(record[:_COUNT_BYTES], "big")


def drop(item: Any) -> None:
    """The trivial sink."""


class Sampled(Ledger):
    """Notes one item of ten: what noting takes does not hide what an item does."""

    EACH: Final = 10

    def write(self, item: Stamped) -> None:
        """Its latency ends here."""
        if item[1] % self.EACH == 0:
            super().write(item)
