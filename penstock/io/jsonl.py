"""A sink of JSON-lines files."""

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import msgspec

from penstock.io.epoch_files import EpochFiles, appear
from penstock.io.part_file import PartFile, part_path
from penstock.io.protocol import SinkContext


@dataclass
class Jsonl:
    """Appends each item as a line to its replica's file; a crash may leave the last batch there twice.

    Where commits are epoch marks, a replica has a file for each epoch instead, which appears whole, and once.
    """

    directory: Path
    _lines: PartFile | EpochFiles | None = field(init=False, default=None, repr=False)

    def open(self, context: SinkContext) -> None:
        if context.attempt is None:
            self._lines = PartFile.append_to(part_path(self.directory, context.replica))
        else:
            self._lines = EpochFiles(self.directory, context.task, context.replica, context.attempt)
            self._lines.open()

    def write(self, item: Any) -> None:
        assert self._lines is not None, "a sink is opened before it is written to"
        self._lines.write_line(msgspec.json.encode(item))

    def flush(self) -> None:
        """A batch is about to be committed: its items must survive a crash of the host, too."""
        if isinstance(self._lines, PartFile):
            self._lines.sync()

    def prepare(self, epoch: int) -> str | None:
        """The file of an epoch, if it has any lines, is on the disk and hidden."""
        assert isinstance(self._lines, EpochFiles), "a sink prepares where commits are epoch marks"
        return self._lines.prepare(epoch)

    def commit(self, description: str) -> None:
        """It appears."""
        appear(Path(description))

    def close(self) -> None:
        if self._lines is not None:
            self.flush()
            self._lines.close()
            self._lines = None


def jsonl(path: str | Path) -> Jsonl:
    """A directory of JSON-lines files, `part-00000.jsonl` for replica 0 and so on.

    Where commits are marks, as with a checkpoint, there is a file for each commit and replica instead, which
    appears whole: every item once.
    """
    return Jsonl(Path(path).resolve())
