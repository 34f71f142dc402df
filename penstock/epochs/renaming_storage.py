"""A checkpoint on a file system that is elsewhere, and that renames a file in one step or not at all.

A file is written under a name that nobody else has, and renamed, which is refused where the name is taken: of
two that create one name, one is refused, and a crash at any step leaves the old state or the new one.
"""

import uuid
from typing import Protocol

from penstock.epochs.storage import UNFINISHED


class RemoteFiles(Protocol):
    """What `RenamingStorage` asks of the file system, one call each; a name holds its directory."""

    def names(self, directory: str) -> list[str]:
        """Names in a directory, without it; none if it is not there."""
        ...

    def read(self, name: str) -> bytes | None:
        """The content of a file, None if there is none."""
        ...

    def write_new(self, name: str, content: bytes) -> None:
        """Make a file that is not there yet, and its directory; durable when this returns."""
        ...

    def rename(self, name: str, target: str) -> bool:
        """In one step, and durable when this returns; False, and nothing happens, if the target is there."""
        ...

    def delete(self, name: str) -> None:
        """Remove a file if it is there."""
        ...


class RenamingStorage:
    """`Storage` (storage.py) there."""

    def __init__(self, files: RemoteFiles) -> None:
        self._files = files

    def names(self, directory: str) -> list[str]:
        """Without what is not finished."""
        known = self._files.names(directory)
        return [f"{directory}/{name}" for name in known if not name.startswith(UNFINISHED)]

    def read(self, name: str) -> bytes | None:
        """The content of a file, None if there is none."""
        return self._files.read(name)

    def create(self, name: str, content: bytes) -> bool:
        """Write it under another name, and rename it."""
        directory = name.rpartition("/")[0]
        temporary = f"{directory}/{UNFINISHED}{uuid.uuid4().hex}"
        self._files.write_new(temporary, content)
        if self._files.rename(temporary, name):
            return True
        self._files.delete(temporary)
        return False

    def delete(self, name: str) -> None:
        """Remove a file if it is there."""
        self._files.delete(name)

    def sweep(self, directory: str) -> None:
        """Remove unfinished files: a driver that is cut off and still writes one fails when it renames it."""
        for name in self._files.names(directory):
            if name.startswith(UNFINISHED):
                self._files.delete(f"{directory}/{name}")
