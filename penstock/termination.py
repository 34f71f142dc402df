"""A process that is told to end does so as if its work had raised: what it has opened is closed."""

import signal
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def terminated_as_an_exit() -> Iterator[None]:
    """While it lasts SIGTERM raises `SystemExit`, with the exit code that shells give it.

    Signals come to the main thread only; in another one nothing changes.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = signal.signal(signal.SIGTERM, lambda number, _: sys.exit(128 + number))
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)
