"""Files that appear whole: one for each epoch of a replica, when the epoch is committed.

Until then a file is in a hidden directory inside that of the sink, under a name that does not end like those
that are committed; committing is to rename it. So a reader of the directory sees whole files or none, and who
removes them when he has read them finds none again. Names tell epoch, replica, attempt and task.
"""

import re
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from penstock.io.part_file import PartFile, make_directory, part_paths, sync_directory

HIDDEN: Final = ".uncommitted"
_PREPARED: Final = ".prepared"
_UNFINISHED: Final = ".unfinished"
_NAME: Final = re.compile(r"part-\d{12}-\d{5}-(\w+)-(\d{8})-(.+)\.jsonl\.(prepared|unfinished)")


@dataclass(slots=True)
class EpochFiles:
    """Those of one replica in one attempt: lines are appended, and belong to the epoch that ends next."""

    directory: Path
    task: str
    replica: int
    attempt: str
    _part: PartFile | None = field(init=False, default=None, repr=False)

    def open(self) -> None:
        """Throw away what earlier attempts have left: what commits name of it has appeared by now.

        Files of boundaries, after which nothing is appended to them, end with a whole line.
        """
        hidden = self.directory / HIDDEN
        make_directory(hidden)
        checkpoint, _, number = self.attempt.rpartition("-")
        for file in hidden.iterdir():
            found = _NAME.fullmatch(file.name)
            if found is not None and found[1] == checkpoint and found[2] < number and found[3] == self.task:
                file.unlink(missing_ok=True)  # all replicas do this, at the same time
        for path in part_paths(self.directory):
            part = PartFile.append_to(path)
            part.sync()
            part.close()

    def write_line(self, line: bytes) -> None:
        """Append a line and its end; one that cannot be written whole (full disk) is undone, and told."""
        if self._part is None:
            self._part = PartFile.begin(self._hidden(self._path(0), _UNFINISHED))
        self._part.write_line(line)

    def prepare(self, epoch: int) -> str | None:
        """Put what was written since the last time on the disk; the file that it will be, None if nothing."""
        part, self._part = self._part, None
        if part is None:
            return None
        path = self._path(epoch)
        try:
            part.rename(self._hidden(path, _PREPARED))
            part.sync()
        finally:
            part.close()
        return str(path)

    def close(self) -> None:
        """What was not prepared is of no use to anybody."""
        part, self._part = self._part, None
        if part is not None:
            part.close()

    def _path(self, epoch: int) -> Path:
        return self.directory / f"part-{epoch:012d}-{self.replica:05d}-{self.attempt}-{self.task}.jsonl"

    @staticmethod
    def _hidden(path: Path, suffix: str) -> Path:
        return path.parent / HIDDEN / f"{path.name}{suffix}"


def appear(path: Path) -> None:
    """Let a file be seen that was prepared; nothing happens if it has appeared, and perhaps gone, before."""
    hidden = path.parent / HIDDEN
    prepared = hidden / f"{path.name}{_PREPARED}"
    if not hidden.is_dir():
        raise FileNotFoundError(f"{hidden}, with output that is to be committed, is gone; bring it back")
    if path.exists() and prepared.exists():  # in this order: another may be committing the same
        raise FileExistsError(f"{path} is there already, and not of this checkpoint; move it elsewhere")
    with suppress(FileNotFoundError):
        prepared.replace(path)
    for directory in (path.parent, hidden):
        sync_directory(directory)
