"""A sink of JSON-lines files."""

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import msgspec

from penstock.io.part_file import PartFile, part_path
from penstock.io.protocol import SinkContext


@dataclass
class Jsonl:
    """Appends each item as a line to its replica's file; a crash may leave the last batch there twice."""

    directory: Path
    _part: PartFile | None = field(init=False, default=None, repr=False)

    def open(self, context: SinkContext) -> None:
        self._part = PartFile.append_to(part_path(self.directory, context.replica))

    def write(self, item: Any) -> None:
        assert self._part is not None, "a sink is opened before it is written to"
        self._part.write_line(msgspec.json.encode(item))

    def flush(self) -> None:
        """A batch is about to be committed: its items must survive a crash of the host, too."""
        if self._part is not None:
            self._part.sync()

    def close(self) -> None:
        if self._part is not None:
            self.flush()
            self._part.close()
            self._part = None


def jsonl(path: str | Path) -> Jsonl:
    """A directory of JSON-lines files, `part-00000.jsonl` for replica 0 and so on."""
    return Jsonl(Path(path).resolve())
