"""Whether each item came once and in its order, where so many come that none of them can be kept."""

import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from penstock.io.protocol import SinkContext
from penstock.spark.job import Job


@dataclass
class InOrder:
    """A trivial sink of one replica, for items that rise; it notes how often one did not.

    If each is above the one before, none came twice, and as many as were sent are all of them. So it only
    compares, which takes some 12 ns.
    """

    directory: str
    _last: bytes = field(init=False, default=b"")
    _fallen: int = field(init=False, default=0)

    def open(self, context: SinkContext) -> None:  # noqa: ARG002 - what a sink is given
        """It may be opened again, in another process: then it goes on from there."""
        self._last, self._fallen = b"", 0

    def write(self, item: bytes) -> None:
        """It is not kept."""
        if item <= self._last:
            self._fallen += 1
        self._last = item

    def close(self) -> None:
        """Add a note."""
        with (Path(self.directory) / "fallen").open("a") as notes:
            notes.write(f"{self._fallen}\n")

    def wrong(self, job: Job, source: str, sink: str) -> int:
        """Items of a flow that were lost, doubled or reordered when it has ended: 0 only if none was."""
        tasks = job.metrics().tasks
        fallen = sum(map(int, (Path(self.directory) / "fallen").read_text().split()))
        return abs(tasks[source].items_in - tasks[sink].items_in) + fallen


@contextmanager
def in_order() -> Iterator[InOrder]:
    """Such a sink, as long as it may be asked."""
    with tempfile.TemporaryDirectory(prefix="penstock-bench-") as place:
        yield InOrder(place)
