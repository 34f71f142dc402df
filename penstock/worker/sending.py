"""Frames to the bridge: some go with one system call, though each is an envelope of its own."""

from collections.abc import Callable
from contextlib import AbstractContextManager
from typing import Any, Final

_MOST_FRAMES: Final = 32
_MOST_BYTES: Final = 1 << 16
_TOGETHER_NS: Final = 50_000
_ITEMS: Final = 256


class Frames:
    """What a worker sends, in its order: at once, or some together, so few that the first waits no longer
    than it takes to code the others. `lock` is that of whoever sends.
    """

    def __init__(
        self, send: Callable[[bytes], None], lock: AbstractContextManager[Any], *, gathers: bool
    ) -> None:
        self.send = self._now = send
        """Send a frame; whoever calls it holds the lock."""
        self._lock = lock
        self._gathers = gathers
        self._waiting: list[bytes] = []
        self._bytes = 0

    def gather(self) -> None:
        """Send what comes now with few system calls, until `apart`."""
        if self._gathers:
            with self._lock:
                self.send = self._add

    def let_go(self) -> None:
        """Send what was gathered."""
        if self._waiting:
            with self._lock:
                self._flush()

    def apart(self) -> None:
        """Send what was gathered, and from now on each frame by itself."""
        if self.send is not self._now:
            with self._lock:
                self._flush()
                self.send = self._now

    def _add(self, frame: bytes) -> None:
        self._waiting.append(frame)
        self._bytes += len(frame)
        if len(self._waiting) >= _MOST_FRAMES or self._bytes >= _MOST_BYTES:
            self._flush()

    def _flush(self) -> None:
        waiting, self._waiting, self._bytes = self._waiting, [], 0
        if waiting:
            self._now(b"".join(waiting))


class Pace:
    """How quick a task is: where items take next to no time, what came of one may wait for the next."""

    __slots__ = ("_gathering_ns", "_items", "_useful_ns", "is_quick", "together")

    def __init__(self) -> None:
        self.is_quick = False
        """Whether the last items took less than `_TOGETHER_NS` in the mean."""
        self.together = 1
        """How many of them took that."""
        self._items = self._useful_ns = self._gathering_ns = 0

    def took(self, useful_ns: int, items: int) -> bool:
        """So many items took so long; whether what was gathered is to go now."""
        self._useful_ns += useful_ns
        self._items += items
        if self._items >= _ITEMS:
            self.is_quick = self._useful_ns < self._items * _TOGETHER_NS
            self.together = max(1, self._items * _TOGETHER_NS // max(1, self._useful_ns))
            self._items = self._useful_ns = 0
        self._gathering_ns += useful_ns
        if self._gathering_ns < _TOGETHER_NS:
            return False
        self._gathering_ns = 0
        return True
