"""One file of lines for each replica of a sink, so that no two processes ever write into the same file.

A line survives the death of its process once it is written, and a crash of the host once it is synced. A
batch is committed after `flush`, so a sink syncs there. What an earlier process wrote and never synced counts
as unsynced: its successor answers for it.
"""

import os
from dataclasses import dataclass, field
from pathlib import Path
from typing import Self

TAIL_BYTES = 65536


@dataclass(slots=True)
class PartFile:
    """Whole lines appended to a file, each by one system call: a killed process loses none it was given."""

    path: Path
    descriptor: int
    size: int
    _unsynced: bool = field(init=False, default=True, repr=False)
    _named: bool = field(init=False, default=False, repr=False)

    @classmethod
    def append_to(cls, path: Path) -> Self:
        """Open for appending; half a line that a killed process may have left at the end is cut off first."""
        make_directory(path.parent)
        descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o644)
        size = _end_of_last_line(descriptor)
        os.ftruncate(descriptor, size)
        return cls(path, descriptor, size)

    @classmethod
    def begin(cls, path: Path) -> Self:
        """Open an empty file for appending; the directory must be there, and what had that name is gone."""
        flags = os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_APPEND | os.O_CLOEXEC
        return cls(path, os.open(path, flags, 0o644), 0)

    def write_line(self, line: bytes) -> None:
        """Append a line and its end; one that cannot be written whole (full disk) is undone, and told."""
        record = left = line + b"\n"
        self._unsynced = True
        try:
            while left:
                left = left[os.write(self.descriptor, left) :]
        except OSError as problem:
            os.ftruncate(self.descriptor, self.size)
            raise OSError(problem.errno, problem.strerror, str(self.path)) from None
        self.size += len(record)

    def sync(self) -> None:
        """Return when every line is on the disk, and the file can be found there by its name."""
        if self._unsynced:
            os.fdatasync(self.descriptor)
            self._unsynced = False
        if not self._named:
            sync_directory(self.path.parent)
            self._named = True

    def rename(self, path: Path) -> None:
        """Give it another name in its directory, for good with the next `sync`."""
        self.path.replace(path)
        self.path = path
        self._named = False

    def close(self) -> None:
        os.close(self.descriptor)


def part_path(directory: Path, replica: int) -> Path:
    """Where a replica writes."""
    return directory / f"part-{replica:05d}.jsonl"


def part_paths(directory: Path) -> list[Path]:
    """Where replicas have written, however many there were."""
    return sorted(directory.glob("part-" + 5 * "[0-9]" + ".jsonl"))


def make_directory(directory: Path) -> None:
    """Make it and the parents it lacks, on the disk too."""
    missing = [path for path in (directory, *directory.parents) if not path.exists()]
    directory.mkdir(parents=True, exist_ok=True)
    for made in reversed(missing):
        sync_directory(made.parent)


def sync_directory(directory: Path) -> None:
    """Put the names of its files on the disk: those made, renamed or deleted."""
    descriptor = os.open(directory, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def _end_of_last_line(descriptor: int) -> int:
    end = os.fstat(descriptor).st_size
    while end > 0:
        begin = max(0, end - TAIL_BYTES)
        found = os.pread(descriptor, end - begin, begin).rfind(b"\n")
        if found >= 0:
            return begin + found + 1
        end = begin
    return 0
