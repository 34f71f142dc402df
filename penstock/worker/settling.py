"""Which inputs are not done with yet, because a sink has taken their items and not delivered them.

A sink that delivers later than it takes (`LateSink`) counts what it has taken and what is safe. After each
input it is written down how much it had taken by then; when that much is safe, the input is done with.
"""

from collections import deque
from collections.abc import Sequence

from penstock.worker.outbox import Outbox
from penstock.worker.runner import Runner


class Settling:
    """The late sink among the tasks of a worker, if there is one: at most one, for it ends a chain."""

    def __init__(self, outbox: Outbox) -> None:
        self._outbox = outbox
        outbox.before_finishing = self.taken
        self._last: Runner | None = None
        self._waiting: deque[tuple[int, int]] = deque()

    def follow(self, runners: Sequence[Runner]) -> None:
        """These are the tasks now; those that were here before have flushed."""
        self._last = runners[-1] if runners[-1].late_sink is not None else None
        self._forget()

    def taken(self, sequence: int) -> None:
        """An input was worked off; before it is said to be finished."""
        if self._last is None or self._last.late_sink is None:
            return
        self._waiting.append((sequence, self._last.late_sink.written))
        if self._outbox.unsettled is None:
            self._outbox.unsettled = sequence

    def look(self) -> None:
        """See what is safe by now."""
        if self._last is None or not self._waiting:
            return
        safe = self._last.delivered()
        while self._waiting and self._waiting[0][1] <= safe:
            self._waiting.popleft()
        self._outbox.unsettled = self._waiting[0][0] if self._waiting else None

    def finish(self) -> None:
        """Wait until all is safe."""
        if self._last is not None:
            self._last.flush()
            self._forget()

    def flushed(self) -> None:
        """The tasks have flushed: all is safe."""
        self._forget()

    def _forget(self) -> None:
        self._waiting.clear()
        self._outbox.unsettled = None
