"""One file of lines for each replica of a sink, so that no two processes ever write into the same file."""

import os
from dataclasses import dataclass
from pathlib import Path
from typing import Self

TAIL_BYTES = 65536


@dataclass(slots=True)
class PartFile:
    """Whole lines appended to a file, each by one system call: a killed process loses none it was given."""

    path: Path
    descriptor: int
    size: int

    @classmethod
    def append_to(cls, path: Path) -> Self:
        """Open for appending; half a line that a killed process may have left at the end is cut off first."""
        path.parent.mkdir(parents=True, exist_ok=True)
        descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o644)
        size = _end_of_last_line(descriptor)
        os.ftruncate(descriptor, size)
        return cls(path, descriptor, size)

    def write_line(self, line: bytes) -> None:
        """Append a line and its end; a write cut short (full disk) is undone, and the error is raised."""
        record = line + b"\n"
        written = os.write(self.descriptor, record)
        if written != len(record):
            os.ftruncate(self.descriptor, self.size)
            raise OSError(f"only {written} of {len(record)} bytes could be written to {self.path}")
        self.size += written

    def close(self) -> None:
        os.close(self.descriptor)


def part_path(directory: Path, replica: int) -> Path:
    """Where a replica writes."""
    return directory / f"part-{replica:05d}.jsonl"


def _end_of_last_line(descriptor: int) -> int:
    end = os.fstat(descriptor).st_size
    while end > 0:
        begin = max(0, end - TAIL_BYTES)
        found = os.pread(descriptor, end - begin, begin).rfind(b"\n")
        if found >= 0:
            return begin + found + 1
        end = begin
    return 0
