"""A sink that keeps who arrived and when; `penstock.testing.arrivals` reads it.

No NumPy here: workers import this module, and are to stay small.
"""

import os
import shutil
import struct
import tempfile
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import Self

from penstock.io.protocol import SinkContext

MARKER = ".penstock-ledger"
RECORD = struct.Struct("<qqqqq")

Stamped = tuple[int, int, int, int, object]
"""An item the ledger can read: (source partition, index in it, due ns, mark, payload).

The mark is any integer the flow wants to see again, for example the replica the item came through.
"""


def stamped(partition: int, index: int, seed: int, due_ns: int) -> Stamped:
    """`make` of a paced source: 32 bytes, marked with how late they were made, in ns."""
    lag_ns = time.monotonic_ns() - due_ns
    return partition, index, due_ns, lag_ns, index.to_bytes(8, "big") + seed.to_bytes(24, "big")


@dataclass
class Ledger:
    """Appends one record of 40 bytes per stamped item to the file of its replica, in a private directory."""

    directory: str = ""
    _descriptor: int | None = field(init=False, default=None, repr=False)

    def __post_init__(self) -> None:
        if not self.directory:
            self.directory = tempfile.mkdtemp(prefix="penstock-ledger-")
            (Path(self.directory) / MARKER).touch()

    def open(self, context: SinkContext) -> None:
        path = Path(self.directory) / f"replica-{context.replica:05d}"
        self._descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o600)

    def write(self, item: Stamped) -> None:
        assert self._descriptor is not None, "a sink is opened before it is written to"
        os.write(self._descriptor, RECORD.pack(*self.record(item)))

    def record(self, item: Stamped) -> tuple[int, int, int, int, int]:
        """What is written of an item: partition, index, due ns, arrived ns, mark."""
        now_ns = time.monotonic_ns()
        partition, index, due_ns, mark, _ = item
        return partition, index, due_ns, now_ns, mark

    def files(self) -> list[Path]:
        """The files of the replicas, in the order of their numbers."""
        return sorted(Path(self.directory).glob("replica-*"))

    def close(self) -> None:
        """In a worker: close the file. In the driver: remove the directory."""
        if self._descriptor is not None:
            os.close(self._descriptor)
            self._descriptor = None
        elif (Path(self.directory) / MARKER).exists():
            shutil.rmtree(self.directory)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()
