"""A checkpoint on another file system, fetched to be looked at; what is removed here is removed there."""

import os
import tempfile
from pathlib import Path
from typing import Final

from penstock.epochs.batches import remove_later
from penstock.epochs.commits import commits_of
from penstock.epochs.copying import ASIDE, free_name, index_of, put_aside
from penstock.epochs.errors import LogError
from penstock.epochs.marks import go_back_to
from penstock.epochs.storage import Storage
from penstock.flow.errors import FlowError
from penstock.spark.directory import Directory
from penstock.spark.hadoop import Hadoop

_PLACES: Final = ("epochs/log", "commits", "offsets", "epochs/parts", "epochs/state")
_METADATA: Final = "metadata"
_TRIES: Final = 5


class Elsewhere:
    """A checkpoint that only Hadoop reaches."""

    def __init__(self, address: str, hadoop: Hadoop | None = None) -> None:
        self._hadoop = Hadoop.found() if hadoop is None else hadoop
        self.directory = Directory(self._hadoop, address)

    @property
    def is_there(self) -> bool:
        """Whether there is anything of that name."""
        return self.directory.has("")

    def fetch(self, into: Path) -> None:
        """Entries of the log first: what they name is there as long as they are kept.

        What a flow removes meanwhile belongs to older commits; then all is fetched once more.
        """
        for tried in range(1, _TRIES + 1):
            try:
                for name in _PLACES:
                    self._fetch(name, into)
                if self.directory.has(_METADATA):
                    self.directory.fetch(_METADATA, into / _METADATA)
            except FileNotFoundError:
                if tried == _TRIES:
                    raise FlowError(f"{self.directory.address} changes faster than it can be read") from None
                continue
            if _is_whole(into):
                break

    def _fetch(self, below: str, into: Path) -> None:
        (into / below).mkdir(parents=True, exist_ok=True)
        there = self.directory.listed(below)
        for file in (into / below).iterdir():
            if file.is_file() and file.name not in there:
                file.unlink()
        for name, changed_s in there.items():
            file = into / below / name
            if not file.exists():  # files are made once and never changed
                self.directory.fetch(f"{below}/{name}", file)
                os.utime(file, (changed_s, changed_s))

    def follow(self, place: Path) -> None:
        """Remove what is there and no longer here; entries of the log first, older ones first."""
        for below in _PLACES:
            kept = {file.name for file in (place / below).iterdir()}
            for name in sorted(self.directory.listed(below)):
                if name not in kept:
                    self.directory.delete(f"{below}/{name}")

    def go_back(self, number: int, storage: Storage) -> str | None:
        """As `penstock.epochs.copying.go_back`; `storage` is where its state is."""
        with tempfile.TemporaryDirectory(prefix="penstock-going-back-") as scratch:
            place = Path(scratch) / "checkpoint"
            self.fetch(place)
            aside = put_aside(place, number)
            if aside is None:
                return None
            name = free_name(Path(aside.name), lambda path: self.directory.has(f"{ASIDE}/{path}")).name
            Directory(self._hadoop, f"{self.directory.address}/{ASIDE}").bring(aside, name)
            index = index_of(place, number)
            if index is None:
                remove_later(place, number)
                self.follow(place)
            else:
                go_back_to(storage, index)
        return f"{self.directory.address}/{ASIDE}/{name}"

    def bring(self, place: Path) -> None:
        """Make it a copy of one that is on this machine: complete, or not at all."""
        address = self.directory.address.rstrip("/")
        if self.is_there:
            raise FlowError(f"{address} is there already; give a directory that is not")
        above, _, name = address.rpartition("/")
        Directory(self._hadoop, above).bring(place, name)


def _is_whole(place: Path) -> bool:
    try:
        return commits_of(place)[-1].problem is None
    except LogError:
        return False
