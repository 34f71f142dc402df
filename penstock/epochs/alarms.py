"""What is to be done at some time, by key. A time that is put off again and again costs no memory."""

import heapq
import itertools
from collections.abc import Callable, Hashable, Iterator


class Alarms:
    """At most one place in the queue that counts for each key: the earliest time that it ever had there."""

    def __init__(self) -> None:
        self._queue: list[tuple[int, int, Hashable]] = []
        self._queued: dict[Hashable, int] = {}
        self._numbers = itertools.count()

    @property
    def next(self) -> int | None:
        """When to look again; there may be nothing to do then."""
        return self._queue[0][0] if self._queue else None

    def set(self, key: Hashable, at: int) -> None:
        """A key has this time."""
        queued = self._queued.get(key)
        if queued is None or at < queued:
            self._queued[key] = at
            heapq.heappush(self._queue, (at, next(self._numbers), key))

    def due(self, now: int, time_of: Callable[[Hashable], int | None]) -> Iterator[Hashable]:
        """Keys whose time has come, by what `time_of` says of them now (None: there is none)."""
        while self._queue and self._queue[0][0] <= now:
            at, _, key = heapq.heappop(self._queue)
            if self._queued.get(key) != at:
                continue
            del self._queued[key]
            time = time_of(key)
            if time is not None and time > now:
                self.set(key, time)
            elif time is not None:
                yield key
