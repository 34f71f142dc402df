"""A checkpoint on a file system of this machine is held by a lock, which dies with its process."""

import fcntl
import os
import time
from collections.abc import Callable
from pathlib import Path

from penstock.flow.errors import FlowError
from penstock.spark.holder import FILE, Holder, decoded, encoded, refusal

_SAY_WHO_S = 1.0
_ENDING_S = 30.0
_LOOK_S = 0.02
_MOST_BYTES = 65536


class LockHold:
    """Taken when it is made; refused if another has it, be it another flow of this process."""

    def __init__(self, place: Path, holder: Holder) -> None:
        self._descriptor = os.open(place / FILE, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o666)
        try:
            if not _locked(self._descriptor):
                raise refusal(str(place), _holder(self._descriptor))
            _await_end(place, decoded(_text(self._descriptor)))
            os.ftruncate(self._descriptor, 0)
            os.pwrite(self._descriptor, encoded(holder).encode(), 0)
        except BaseException:
            os.close(self._descriptor)
            raise
        _OF_THIS_PROCESS.add(self)

    def when_taken(self, tell: Callable[[Holder], None]) -> None:
        """Never."""

    def release(self) -> None:
        """The file stays, and names nobody: without it two could each lock a file of that name."""
        if self in _OF_THIS_PROCESS:
            _OF_THIS_PROCESS.remove(self)
            os.ftruncate(self._descriptor, 0)
            fcntl.flock(self._descriptor, fcntl.LOCK_UN)  # also for a process that is just being started
            os.close(self._descriptor)

    def forget(self) -> None:
        """In a forked process: the lock is the parent's, and must end with it."""
        os.close(self._descriptor)


_OF_THIS_PROCESS: set[LockHold] = set()


def _leave_to_parent() -> None:
    for hold in _OF_THIS_PROCESS:
        hold.forget()
    _OF_THIS_PROCESS.clear()


os.register_at_fork(after_in_child=_leave_to_parent)


def _locked(descriptor: int) -> bool:
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def _text(descriptor: int) -> str:
    return os.pread(descriptor, _MOST_BYTES, 0).decode(errors="replace")


def _holder(descriptor: int) -> Holder | None:
    """Who has the lock; one that has just got it says so in a moment, over the name of its predecessor."""
    deadline_s = time.monotonic() + _SAY_WHO_S
    while True:
        holder = decoded(_text(descriptor))
        named = holder is not None and (holder.is_alive or not holder.is_near)
        if named or time.monotonic() > deadline_s:
            return holder
        time.sleep(_LOOK_S)


def _await_end(place: Path, killed: Holder | None) -> None:
    """A killed driver's Spark lives on for a moment, and may commit in it."""
    deadline_s = time.monotonic() + _ENDING_S
    while killed is not None and killed.is_near and killed.is_alive:
        if time.monotonic() > deadline_s:
            raise FlowError(f"the checkpoint {place} was held by {killed}, whose Spark has not ended yet")
        time.sleep(_LOOK_S)
