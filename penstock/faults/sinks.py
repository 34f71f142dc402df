"""Sinks that are slow, break their promises, or say when they have kept them.

Workers import this module, so it knows nothing of the driver.
"""

import time
from pathlib import Path

from penstock.faults.items import Once, Witness
from penstock.testing.ledger import Stamped


class Announced(Once):
    """Says that the lines of an epoch are on the disk by removing a file, if that is there, and gives a fault
    time to come before the commit.
    """

    awaited = Path()

    def flush(self) -> None:
        super().flush()
        if self.awaited.exists():
            self.awaited.unlink(missing_ok=True)
            time.sleep(0.5)


class Held(Witness):
    """Takes its time as long as a file is there: `pause_s` for each item, or until the file is gone."""

    gate = Path()
    pause_s: float | None = None

    def write(self, item: Stamped) -> None:
        if self.pause_s is None:
            while self.gate.exists():
                time.sleep(0.02)
        elif self.gate.exists():
            time.sleep(self.pause_s)
        super().write(item)


class Stubborn(Witness):
    """One of its hooks raises: `close`, or `flush` from the second time on."""

    hook = "flush"
    _flushed = 0

    def flush(self) -> None:
        self._flushed += 1
        if self.hook == "flush" and self._flushed > 1:
            raise OSError("no room for what was written")

    def close(self) -> None:
        super().close()
        if self.hook == "close":
            raise OSError("no room for what was written")


class Drop:
    """Keeps nothing."""

    def write(self, item: object) -> None:
        """Done."""
