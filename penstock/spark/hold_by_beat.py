"""A checkpoint on another file system is held by a file that its holder writes anew every few seconds.

Whoever finds the file looks for some time whether it changes; clocks of two machines are never compared. A
holder that was silent for that long, and lives, finds out at its next beat that another has its place. Two
that begin in the same moment both look again after they have written: the last to write has it. If they wrote
so much at once that nobody can read it, both write again, each at a time of its own.
"""

import contextlib
import random
import threading
import time
from collections.abc import Callable

from py4j.protocol import Py4JError

from penstock.flow.errors import FlowError
from penstock.spark.directory import Directory
from penstock.spark.holder import FILE, Holder, decoded, encoded, refusal

_BEAT_S = 3.0
_WATCH_S = 10.0  # three beats
_SETTLE_S = 1.0
_LOOK_S = 0.2
_TRIES = 5
_END_S = 5.0


class BeatHold(threading.Thread):
    """Taken when it is made; refused if another's file changes."""

    def __init__(
        self,
        directory: Directory,
        holder: Holder,
        *,
        beat_s: float = _BEAT_S,
        watch_s: float = _WATCH_S,
        settle_s: float = _SETTLE_S,
    ) -> None:
        super().__init__(name="penstock-holder", daemon=True)
        self._directory = directory
        self._holder = holder
        self._beat_s = beat_s
        self._beats = 0
        self._taken_by: Holder | None = None
        self._tell: Callable[[Holder], None] = lambda _: None
        self._released = threading.Event()
        self._await_silence(watch_s)
        last = self._last_to_write(settle_s)
        if last is None or last.token != holder.token:
            raise refusal(directory.address, last)
        self.start()

    def when_taken(self, tell: Callable[[Holder], None]) -> None:
        """It may have happened already."""
        self._tell = tell
        if self._taken_by is not None:
            tell(self._taken_by)

    def run(self) -> None:
        """Beat until it is released, or taken."""
        while not self._released.wait(self._beat_s):
            with contextlib.suppress(FlowError, Py4JError, OSError):  # nobody can commit there either
                other = decoded(self._directory.text(FILE))
                if other is not None and other.token != self._holder.token:
                    self._taken_by = other
                    self._tell(other)
                    return
                self._write()

    def release(self) -> None:
        """Remove the file, unless it is another's by now."""
        self._released.set()
        if threading.current_thread() is not self:
            self.join(_END_S)
        with contextlib.suppress(FlowError, Py4JError, OSError):
            if self._is_mine():
                self._directory.delete(FILE)

    def _await_silence(self, watch_s: float) -> None:
        """Until nobody holds the checkpoint, by all that can be seen; refuses if somebody does."""
        if self._directory.create(FILE, self._text()):
            return
        until_s = time.monotonic() + watch_s
        seen = self._seen()
        while seen is not None and time.monotonic() < until_s:
            holder = decoded(seen)
            if holder is not None and holder.is_near and not holder.is_alive:
                return
            time.sleep(_LOOK_S)
            before, seen = seen, self._seen()
            if seen is not None and seen != before:
                raise refusal(self._directory.address, decoded(seen) or holder)

    def _last_to_write(self, settle_s: float) -> Holder | None:
        for _ in range(_TRIES):
            self._write()
            time.sleep(settle_s)
            last = decoded(self._seen())
            if last is not None:
                return last
            time.sleep(random.uniform(0, settle_s))
        return None

    def _seen(self) -> str | None:
        """The file as it is, None if there is none; one that cannot be read is just being written."""
        try:
            return self._directory.text(FILE)
        except FlowError:
            return ""

    def _is_mine(self) -> bool:
        holder = decoded(self._seen())
        return holder is not None and holder.token == self._holder.token

    def _write(self) -> None:
        self._beats += 1
        self._directory.write(FILE, self._text())

    def _text(self) -> str:
        return f"{encoded(self._holder)}{self._beats}\n"
