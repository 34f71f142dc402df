"""Where a checkpoint's files are. A file appears whole or not at all, and survives a crash once it is told.

`LocalStorage` writes beside the name, syncs, links the name to it, syncs the directory: of two that create
one name, one is refused, and a crash at any of these steps leaves the old state or the new one.
"""

import itertools
import os
from pathlib import Path
from typing import Protocol

UNFINISHED = ".new-"
"""How the name of a file begins that is not finished."""


class Storage(Protocol):
    """A directory of files that are made once and never changed."""

    def names(self, directory: str) -> list[str]:
        """Names of the files below a directory of it, as `read` takes them; none if it is not there."""
        ...

    def read(self, name: str) -> bytes | None:
        """The content of a file, None if there is none."""
        ...

    def create(self, name: str, content: bytes) -> bool:
        """Make a file, durable when this returns; False if there is one of that name already."""
        ...

    def delete(self, name: str) -> None:
        """Remove a file if it is there."""
        ...

    def sweep(self, directory: str) -> None:
        """Remove what interrupted `create`s left behind."""
        ...


class Disk(Protocol):
    """What `LocalStorage` asks of the operating system, one call each."""

    def make_directory(self, path: Path) -> None: ...
    def names(self, path: Path) -> list[str]: ...
    def read(self, path: Path) -> bytes: ...
    def write_new(self, path: Path, content: bytes) -> None: ...
    def sync(self, path: Path) -> None: ...
    def link(self, source: Path, target: Path) -> None: ...
    def unlink(self, path: Path) -> None: ...


class SystemDisk:
    """The file system of this machine."""

    def make_directory(self, path: Path) -> None:
        """Make it and its parents."""
        path.mkdir(parents=True, exist_ok=True)

    def names(self, path: Path) -> list[str]:
        """Names in a directory."""
        return [entry.name for entry in path.iterdir()]

    def read(self, path: Path) -> bytes:
        """The content of a file."""
        return path.read_bytes()

    def write_new(self, path: Path, content: bytes) -> None:
        """Make a file that must not be there yet; only its owner may read it."""
        descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
        with os.fdopen(descriptor, "wb") as file:
            file.write(content)

    def sync(self, path: Path) -> None:
        """Put a file's content, or a directory's names, on the disk."""
        descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)

    def link(self, source: Path, target: Path) -> None:
        """A second name; `FileExistsError` if there is something of that name."""
        target.hardlink_to(source)

    def unlink(self, path: Path) -> None:
        """Remove a name."""
        path.unlink()


class LocalStorage:
    """A checkpoint on this machine's own file systems."""

    def __init__(self, root: Path, disk: Disk | None = None) -> None:
        self._root = root
        self._disk: Disk = disk or SystemDisk()
        self._numbers = itertools.count()
        self._made: set[Path] = set()

    def names(self, directory: str) -> list[str]:
        """Without what is not finished."""
        return [f"{directory}/{name}" for name in self._all(directory) if not name.startswith(UNFINISHED)]

    def read(self, name: str) -> bytes | None:
        """The content of a file, None if there is none."""
        try:
            return self._disk.read(self._root / name)
        except FileNotFoundError:
            return None

    def create(self, name: str, content: bytes) -> bool:
        """Write beside it, sync, link, sync the directory."""
        target = self._root / name
        self._prepare(target.parent)
        temporary = self._written(target.parent, content)
        try:
            self._disk.sync(temporary)
            self._disk.link(temporary, target)
        except FileExistsError:
            self._disk.unlink(temporary)
            return False
        self._disk.sync(target.parent)
        self._disk.unlink(temporary)
        return True

    def delete(self, name: str) -> None:
        """Remove a file if it is there. A crash may bring it back, and does no harm by that."""
        try:
            self._disk.unlink(self._root / name)
        except FileNotFoundError:
            return

    def sweep(self, directory: str) -> None:
        """Remove unfinished files: a driver that is cut off and still writes one fails at its link."""
        for name in self._all(directory):
            if name.startswith(UNFINISHED):
                self.delete(f"{directory}/{name}")

    def _all(self, directory: str) -> list[str]:
        try:
            return self._disk.names(self._root / directory)
        except FileNotFoundError:
            return []

    def _prepare(self, directory: Path) -> None:
        if directory not in self._made:
            self._disk.make_directory(directory)
            self._disk.sync(directory.parent)
            self._made.add(directory)

    def _written(self, directory: Path, content: bytes) -> Path:
        """Under a name that nobody else has, on this host or on another that sees the same directory."""
        while True:
            temporary = directory / f"{UNFINISHED}{os.getpid()}-{next(self._numbers)}"
            try:
                self._disk.write_new(temporary, content)
            except FileExistsError:
                continue
            return temporary
