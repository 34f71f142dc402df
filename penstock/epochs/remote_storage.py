"""A checkpoint on a file system that is elsewhere, where a file gets its name in one step or not at all.

How that is done depends on it (`Creation.java`): of two that create one name, one is refused, and a crash at
any step leaves the old state or the new one.
"""

from typing import Protocol

from penstock.epochs.storage import UNFINISHED


class RemoteFiles(Protocol):
    """What `RemoteStorage` asks of the file system, one call each; a name holds its directory."""

    def names(self, directory: str) -> list[str]:
        """Names in a directory, without it, also of what is not finished; none if it is not there."""
        ...

    def read(self, name: str) -> bytes | None:
        """The content of a file, None if there is none."""
        ...

    def create(self, name: str, content: bytes) -> bool:
        """Make a file, and its directory, durable when this returns; False if there is one of that name."""
        ...

    def delete(self, name: str) -> None:
        """Remove a file if it is there."""
        ...


class RemoteStorage:
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
        """False if there is one of that name."""
        return self._files.create(name, content)

    def delete(self, name: str) -> None:
        """Remove a file if it is there."""
        self._files.delete(name)

    def sweep(self, directory: str) -> None:
        """Remove unfinished files: a driver that is cut off and still writes one fails at its end."""
        for name in self._files.names(directory):
            if name.startswith(UNFINISHED):
                self._files.delete(f"{directory}/{name}")
