"""Records that wait in a file: those of one epoch of a replica, written by a worker and read by the driver.

A file is complete and on the disk when it has its name. What describes it goes into the log of commits: its
name, how many records it has, its length and a checksum.
"""

import os
import struct
import zlib
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, Final

import msgspec

from penstock.io.kafka_records import Made
from penstock.io.part_file import make_directory, sync_directory
from penstock.io.protocol import DeliveryError

_UNFINISHED: Final = ".new-"  # the beginning of names that nobody in a checkpoint takes for finished files
_LENGTH: Final = struct.Struct("<I")
_BUFFER_BYTES: Final = 1 << 18
_NEW: Final = os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC


class SpoolError(RuntimeError):
    """A file of records is not what it was."""


class Spooled(msgspec.Struct, frozen=True):
    """A file of records, as the log of commits describes it."""

    file: str
    records: int
    bytes: int
    checksum: int

    def encode(self) -> str:
        """For the log."""
        return msgspec.json.encode(self).decode()

    @classmethod
    def decode(cls, description: str) -> "Spooled":
        """As it is in the log."""
        return msgspec.json.decode(description, type=cls)


@dataclass(slots=True)
class Spool:
    """The records of one replica in one attempt; they belong to the epoch that ends next."""

    directory: Path
    attempt: str
    replica: int
    task: str
    _file: IO[bytes] | None = field(init=False, default=None, repr=False)
    _records: int = field(init=False, default=0)
    _bytes: int = field(init=False, default=0)
    _checksum: int = field(init=False, default=0)

    def open(self) -> None:
        """Make the directory, if nobody did."""
        make_directory(self.directory)

    def add(self, made: Made) -> None:
        """Append a record; if it cannot be written (full disk), nothing of the epoch can be told any more."""
        content = msgspec.msgpack.encode(made)
        data = _LENGTH.pack(len(content)) + content
        try:
            if self._file is None:
                self._file = os.fdopen(os.open(self._unfinished, _NEW, 0o600), "wb", _BUFFER_BYTES)
                self._records = self._bytes = self._checksum = 0
            self._file.write(data)
        except OSError as problem:
            raise self._refused(problem) from problem
        self._records += 1
        self._bytes += len(data)
        self._checksum = zlib.crc32(data, self._checksum)

    def finish(self, epoch: int) -> Spooled | None:
        """Put what was added since the last time on the disk; None if nothing was."""
        file, self._file = self._file, None
        if file is None:
            return None
        name = f"{self.attempt}-{epoch:012d}-{self.replica:05d}-{self.task}"
        try:
            with file:
                file.flush()
                os.fdatasync(file.fileno())
            self._unfinished.replace(self.directory / name)
            sync_directory(self.directory)
        except OSError as problem:
            raise self._refused(problem) from problem
        return Spooled(name, self._records, self._bytes, self._checksum)

    def close(self) -> None:
        """What was not finished is of no use to anybody."""
        file, self._file = self._file, None
        if file is not None:
            file.close()
            self._unfinished.unlink(missing_ok=True)

    @property
    def _unfinished(self) -> Path:
        return self.directory / f"{_UNFINISHED}{self.attempt}-{self.replica:05d}-{self.task}"

    def _refused(self, problem: OSError) -> DeliveryError:
        return DeliveryError(f"{self._unfinished} cannot be written: {problem.strerror or problem}")


def read_spooled(path: Path, spooled: Spooled) -> Iterator[Made]:
    """The records of a file, in their order; raises at its end if it is not what is described."""
    records = size = checksum = 0
    with path.open("rb", buffering=_BUFFER_BYTES) as file:
        while head := file.read(_LENGTH.size):
            content = file.read(_LENGTH.unpack(head)[0]) if len(head) == _LENGTH.size else b""
            checksum = zlib.crc32(content, zlib.crc32(head, checksum))
            size += len(head) + len(content)
            if size > spooled.bytes:
                break
            records += 1
            yield _made(content, path)
    if (records, size, checksum) != (spooled.records, spooled.bytes, spooled.checksum):
        raise SpoolError(f"{path} is damaged: it is not as long, or not as it was prepared; restore it")


def _made(content: bytes, path: Path) -> Made:
    try:
        return msgspec.msgpack.decode(content, type=Made)
    except (msgspec.DecodeError, msgspec.ValidationError) as problem:
        raise SpoolError(f"{path} is damaged: {problem}; restore it") from None
