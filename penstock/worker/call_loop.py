"""The event loop of a worker whose body is async: it runs in the task's thread, whenever that would wait.

So all that is not the body's (taking items in, sending on what came of them) happens between two turns of the
loop, in the same thread, and needs no lock. Time that the loop spends waiting is no useful time.
"""

import asyncio
import inspect
import selectors
import time
from collections.abc import Coroutine
from typing import Any, Protocol

from penstock.worker.useful_time import TaskTime


class HasFile(Protocol):
    """Something that can be waited for."""

    def fileno(self) -> int:
        """For select."""
        ...


class CallClock(Protocol):
    """Whoever wants to know which item has the thread; items are known by their input and their number."""

    def taken(self) -> tuple[int, int]:
        """The next item of the input is taken."""
        ...

    def enter(self, place: tuple[int, int]) -> None:
        """That item has the thread from now on."""
        ...

    def leave(self) -> None:
        """No item has it."""
        ...


class CallLoop:
    """Runs until it has something to tell. `source` is where input comes from, if that is to be noticed."""

    def __init__(
        self,
        loop: asyncio.AbstractEventLoop,
        task_time: TaskTime,
        source: HasFile | None = None,
        clock: CallClock | None = None,
    ) -> None:
        self.clock = clock
        self._loop = loop
        self._task_time = task_time
        self._source = source
        self._turns = self._listens = self._wants_input = self._has_input = False

    def start(self, call: Coroutine[Any, Any, None]) -> asyncio.Task[None]:
        """Begin a call in the next turn."""
        return self._loop.create_task(call)

    def turn(self, wait_s: float | None) -> None:
        """Let calls go on until something is told, or so long."""
        works = self._task_time.runs
        if not works:
            self._task_time.go(time.monotonic_ns())
        self._turns = True
        limit = None if wait_s is None else self._loop.call_later(wait_s, self._loop.stop)
        try:
            self._loop.run_forever()
        finally:
            self._turns = False
            if limit is not None:
                limit.cancel()
            if not works:
                self._task_time.halt(time.monotonic_ns())

    def tell(self) -> None:
        """For what runs in the loop: end this turn."""
        if self._turns:
            self._loop.stop()

    def turn_for_input(self, wait_s: float | None) -> bool:
        """The same, until there is input at the latest; whether there is."""
        assert self._source is not None
        self._wants_input, self._has_input = True, False
        if not self._listens:
            self._loop.add_reader(self._source, self._hear)
            self._listens = True
        self.turn(wait_s)
        self._wants_input = False
        return self._has_input

    def _hear(self) -> None:
        if self._wants_input:
            self._has_input = True
            self._loop.stop()
        else:  # there is no room for it: do not be told of it again and again
            assert self._source is not None
            self._loop.remove_reader(self._source)
            self._listens = False

    def settle(self, answer: object) -> None:
        """Wait for what a hook returned, if it is to be awaited; no call is open then."""
        if inspect.isawaitable(answer):
            self._loop.run_until_complete(_awaited(answer))

    def close(self) -> None:
        """The end: what the body left running is cancelled, and ends."""
        left = asyncio.all_tasks(self._loop)
        for task in left:
            task.cancel()
        if left:
            self._loop.run_until_complete(asyncio.wait(left, timeout=1.0))
        self._loop.run_until_complete(self._loop.shutdown_asyncgens())
        self._loop.close()


async def _awaited(answer: Any) -> None:
    await answer


def waiting_loop(task_time: TaskTime) -> asyncio.AbstractEventLoop:
    """A loop that takes the time it waits out of the useful time."""
    return asyncio.SelectorEventLoop(_Selector(task_time))


class _Selector(selectors.DefaultSelector):
    def __init__(self, task_time: TaskTime) -> None:
        super().__init__()
        self._task_time = task_time

    def select(self, timeout: float | None = None) -> list[tuple[selectors.SelectorKey, int]]:
        if not self._task_time.runs or (timeout is not None and timeout <= 0):
            return super().select(timeout)
        self._task_time.halt(time.monotonic_ns())
        try:
            return super().select(timeout)
        finally:
            self._task_time.go(time.monotonic_ns())
