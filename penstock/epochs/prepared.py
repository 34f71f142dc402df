"""Files that sinks put into `context.prepared_in`, where only Hadoop reaches the checkpoint.

A worker then has a directory of its executor for them. What is finished there when `prepare` returns goes
into the checkpoint, before anybody hears of the epoch. The driver fetches files while it commits, and what a
sink removes here is removed there. A name that begins with a dot is that of a file that is not finished.
"""

import os
import shutil
import struct
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from penstock.epochs.boundary import PREPARED
from penstock.epochs.errors import LogError
from penstock.epochs.storage import Storage

_WRITTEN: Final = struct.Struct(">d")
"""When a file was finished, in seconds since 1970; a copy of it looks as old."""


def put_away(directory: Path, storage: Storage) -> None:
    """In a worker: what is finished goes into the checkpoint."""
    for file in sorted(directory.glob("[!.]*")):
        content = _WRITTEN.pack(file.stat().st_mtime) + file.read_bytes()
        if not storage.create(f"{PREPARED}/{file.name}", content):
            raise LogError(f"{PREPARED}/{file.name} is there already: two processes write as one")
        file.unlink()


class Fetched:
    """In the driver: a directory of this machine, with the files of the checkpoint while they are needed."""

    def __init__(self, storage: Storage) -> None:
        self.directory: Final = Path(tempfile.mkdtemp(prefix="penstock-prepared-"))
        self._storage = storage

    @contextmanager
    def at_hand(self) -> Iterator[None]:
        """All that is there now, and afterwards no more than is still here."""
        names = [name.rpartition("/")[2] for name in self._storage.names(PREPARED)]
        for name in names:
            if not (self.directory / name).exists():
                self._fetch(name)
        yield
        for name in names:
            if not (self.directory / name).exists():
                self._storage.delete(f"{PREPARED}/{name}")

    def close(self) -> None:
        """Nothing more is committed."""
        shutil.rmtree(self.directory, ignore_errors=True)

    def _fetch(self, name: str) -> None:
        content = self._storage.read(f"{PREPARED}/{name}")
        if content is None:
            return  # it was just removed
        file = self.directory / name
        file.write_bytes(content[_WRITTEN.size :])
        (written_s,) = _WRITTEN.unpack_from(content)
        os.utime(file, (written_s, written_s))
