"""An event loop for async bodies in a test: where nothing but time is waited for, none passes.

`asyncio.sleep` and timeouts end at once, in the order in which they would. Where a body waits for something
real too (a socket, a thread), time passes as it does.
"""

import asyncio
import selectors
import time
from collections.abc import Callable
from typing import Any


class JumpingLoop(asyncio.SelectorEventLoop):
    """Its time begins at 0.

    >>> loop = JumpingLoop()
    >>> loop.run_until_complete(asyncio.sleep(3600, "an hour later"))
    'an hour later'
    >>> loop.time() >= 3600
    True
    >>> loop.close()
    """

    def __init__(self) -> None:
        self._passed_s = 0.0
        self._in_threads = 0
        super().__init__(_Selector(self))

    def time(self) -> float:
        """In seconds, as far as it has jumped or passed."""
        return self._passed_s

    def run_in_executor(  # type: ignore[override]
        self, executor: Any, func: Callable[..., Any], *args: Any
    ) -> "asyncio.Future[Any]":
        """Threads work in real time."""
        self._in_threads += 1
        future = super().run_in_executor(executor, func, *args)
        future.add_done_callback(self._end_thread)
        return future

    def _end_thread(self, _future: "asyncio.Future[Any]") -> None:
        self._in_threads -= 1

    def jumps(self, others: int) -> bool:
        """Whether only time is waited for: there are so many files that somebody reads or writes."""
        return not others and not self._in_threads

    def let_pass(self, seconds: float) -> None:
        """So much later."""
        self._passed_s += seconds


class _Selector(selectors.DefaultSelector):
    def __init__(self, loop: JumpingLoop) -> None:
        super().__init__()
        self._loop = loop

    def select(self, timeout: float | None = None) -> list[tuple[selectors.SelectorKey, int]]:
        others = len(self.get_map()) - 1  # one file is the loop's own, by which threads wake it
        if timeout is not None and timeout > 0 and self._loop.jumps(others):
            ready = super().select(0)
            if not ready:
                self._loop.let_pass(timeout)
            return ready
        began_s = time.monotonic()
        ready = super().select(timeout)
        self._loop.let_pass(time.monotonic() - began_s)
        return ready
