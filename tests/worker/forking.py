"""A task that forks, and what becomes of the process it forked."""

import os
import time

from penstock.flow import Out
from penstock.processes import PROC

_SLEEP_S = 60.0

STAYS, LEAVES = "stays in the group of its parent", "leads a group of its own"


def fork_a_sleeper(*, leaves: bool) -> int:
    """A process that has everything open that its parent has, and does nothing; its number."""
    child = os.fork()
    if child == 0:
        if leaves:
            os.setsid()
        time.sleep(_SLEEP_S)
        os._exit(0)
    while leaves and os.getpgid(child) != child:
        time.sleep(0.001)
    return child


class Forking:
    """Sends its own process number and that of a process it has forked, which is as its item says."""

    def process(self, item: str, out: Out[tuple[int, int]]) -> None:
        out((os.getpid(), fork_a_sleeper(leaves=item == LEAVES)))


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
