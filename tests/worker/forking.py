"""A task that forks, and what becomes of the process it forked."""

import os
import time

from penstock.processes import PROC
from penstock.worker.context import Out


def fork_a_sleeper() -> int:
    """A process that has everything open that its parent has, and does nothing; its number."""
    child = os.fork()
    if child == 0:
        time.sleep(600)
        os._exit(0)
    return child


class Forking:
    """Sends its own process number and that of a process it has forked."""

    def process(self, item: object, out: Out) -> None:
        out((os.getpid(), fork_a_sleeper()))


def is_gone(pid: int) -> bool:
    """Whether a process has ended, be it that nobody has waited for it yet."""
    try:
        state = (PROC / str(pid) / "stat").read_text().rpartition(")")[2].split()[0]
    except (FileNotFoundError, ProcessLookupError):
        return True
    return state in "ZX"


def goes_within(pid: int, seconds: float) -> bool:
    """Wait that long at most for its end."""
    deadline = time.monotonic() + seconds
    while not is_gone(pid):
        if time.monotonic() > deadline:
            return False
        time.sleep(0.005)
    return True
