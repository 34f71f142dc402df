"""Splits that are added while a flow runs: found by the driver, and read from a boundary on."""

import threading
from collections.abc import Callable
from functools import partial

from penstock.flow.errors import FlowError, JobFailed
from penstock.spark.reading import Reading
from penstock.spark.switchboard import Switchboard

_SHOWN = 5


class Discovery(threading.Thread):
    """Looks from time to time until `over` is set. What it cannot do now it tells, and tries again."""

    def __init__(
        self,
        reading: Reading,
        board: Switchboard,
        every_s: float,
        over: threading.Event,
        is_running: Callable[[], bool],
        tell: Callable[[str], None],
    ) -> None:
        super().__init__(name="penstock-discovery", daemon=True)
        self._reading = reading
        self._board = board
        self._every_s = every_s
        self._over = over
        self._is_running = is_running
        self._tell = tell
        self._told = ""

    def run(self) -> None:
        """Until the flow is over."""
        while not self._over.wait(self._every_s):
            try:
                self.look()
                self._told = ""
            except Exception as problem:  # noqa: BLE001 - a source of the user's may raise anything
                self._trouble(str(problem))

    def look(self) -> None:
        """Have what was added read from now on."""
        found = self._reading.discover()
        if not found:
            return
        with self._board.turning:
            try:
                if not self._is_running():
                    return
                self._board.read_more(partial(self._reading.add, found))
            except (FlowError, JobFailed):
                if self._is_running():
                    raise
                return  # it ended, or is started again: the next look will find the same
        for source, splits in found.items():
            names = ", ".join([*splits][:_SHOWN]) + (", ..." if len(splits) > _SHOWN else "")
            self._tell(f'source "{source}" also reads {names} from now on')

    def _trouble(self, problem: str) -> None:
        """Once, however often it comes again."""
        if problem != self._told and not self._over.is_set():
            self._told = problem
            self._tell(f"it cannot look for more to read: {problem}")
