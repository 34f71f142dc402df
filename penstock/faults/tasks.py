"""Tasks that do what users' code may do: raise, die, fork, start threads, or take their time.

Workers import this module, so it knows nothing of the driver.
"""

import os
import signal
import threading
import time
from pathlib import Path
from typing import Any, Final

from penstock import state
from penstock.faults.items import Pass
from penstock.testing.ledger import Stamped

EVERY: Final = 100
POISON: Final = 1000
LARGE_BYTES: Final = 65 << 20
LEAK_BYTES: Final = 2 << 20
HEAVY_BYTES: Final = 20_000
SERVICE_S: Final = 0.004
KEYS: Final = 101


def is_bad(item: Stamped) -> bool:
    """The last of every hundred items of a split."""
    return item[1] % EVERY == EVERY - 1


def key_of(item: Stamped) -> int:
    """Of the items of both splits."""
    return item[1] % KEYS


class Counts(Pass):
    """Counts the items of each key in declared state."""

    seen = state.value(0)

    def process(self, item: Stamped, out: Any) -> None:
        self.seen += 1
        super().process(item, out)


class Raises(Pass):
    """Cannot take bad items."""

    def process(self, item: Stamped, out: Any) -> None:
        if is_bad(item):
            raise ValueError(f"item {item[1]} is wrong")
        super().process(item, out)


class Locks(Pass):
    """What it makes of bad items cannot be pickled."""

    def process(self, item: Stamped, out: Any) -> None:
        super().process((*item[:4], threading.Lock()) if is_bad(item) else item, out)


class Swells(Pass):
    """What it makes of the first bad item of each split is larger than anything may be."""

    def process(self, item: Stamped, out: Any) -> None:
        super().process((*item[:4], bytes(LARGE_BYTES)) if item[1] == EVERY - 1 else item, out)


class Mistakes(Pass):
    """Takes bad items for something else."""

    def process(self, item: Any, out: Any) -> None:
        super().process(item[1].decode() if is_bad(item) else item, out)


class Poisoned(Pass):
    """Dies at one item of each split, each time that it comes."""

    def process(self, item: Stamped, out: Any) -> None:
        if item[1] == POISON:
            os.kill(os.getpid(), signal.SIGSEGV)
        super().process(item, out)


class Hangs(Pass):
    """Never comes back from one item of each split."""

    def process(self, item: Stamped, out: Any) -> None:
        if item[1] == POISON:
            time.sleep(3600)
        super().process(item, out)


class Eats(Pass):
    """Wants more and more memory for one item of each split."""

    def process(self, item: Stamped, out: Any) -> None:
        eaten = []
        while item[1] == POISON:
            eaten.append(b"x" * LEAK_BYTES)
            time.sleep(0.01)
        super().process(item, out)


class Leaks(Pass):
    """Keeps a little of every item."""

    def open(self, context: Any) -> None:
        super().open(context)
        self.kept: list[bytes] = []

    def process(self, item: Stamped, out: Any) -> None:
        self.kept.append(b"x" * (LEAK_BYTES // 16))
        super().process(item, out)


class Parent(Pass):
    """Forks a process that would outlive it, and holds whatever it held."""

    def __init__(self, children: Path) -> None:
        self.children = children

    def open(self, context: Any) -> None:
        super().open(context)
        child = os.fork()
        if child == 0:
            time.sleep(120)
            os._exit(0)
        with self.children.open("a") as note:
            note.write(f"{child}\n")


class Threaded(Pass):
    """Starts threads of its own, one of which is not told to end with the process."""

    def open(self, context: Any) -> None:
        super().open(context)
        for _ in range(4):
            threading.Thread(target=tick, daemon=True).start()
        threading.Thread(target=tick, args=(1.0,)).start()


def tick(seconds: float = 3600.0) -> None:
    """What such a thread does."""
    until_s = time.monotonic() + seconds
    while time.monotonic() < until_s:
        time.sleep(0.01)


class Slow(Pass):
    """250 items/s and replica."""

    def process(self, item: Stamped, out: Any) -> None:
        time.sleep(SERVICE_S)
        super().process(item, out)


class Heavy(Pass):
    """Makes items of 20 KB, so that a queue without an end would be seen."""

    def process(self, item: Stamped, out: Any) -> None:
        super().process((*item[:4], bytes(HEAVY_BYTES)), out)
