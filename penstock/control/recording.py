"""A run on paper: its snapshots as `penstock decide` reads them, and beside them what came of it.

`run.jsonl` holds a header, then one snapshot per line. `run.decisions.jsonl` holds one entry per line: the
decision made from the snapshot of the same number, its effect and, one interval later, what was observed.

A run that is started again is appended, with a header of its own; numbers go on. They count the snapshots of
the file, from 0, and so still join decisions to snapshots when a killed run left one without its decision.
"""

import errno
import os
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from pathlib import Path
from types import TracebackType
from typing import TypeVar

import msgspec

from penstock.control.decision_log import Entry
from penstock.control.recording_header import RecordingHeader, decode_header, encode_header
from penstock.io.part_file import PartFile
from penstock.stats.snapshot import Snapshot, decode_snapshot, encode_snapshot

T = TypeVar("T")


class RecordingError(ValueError):
    """A recording that cannot be read; the message names the file and the line."""


def decisions_path(path: Path) -> Path:
    """Where the decisions of the recording `path` are."""
    return path.with_name(f"{path.stem}.decisions.jsonl")


def delete_recording(path: Path) -> None:
    """Begin anew: no snapshots and no decisions."""
    path.unlink(missing_ok=True)
    decisions_path(path).unlink(missing_ok=True)


class Recorder(AbstractContextManager["Recorder"]):
    """Writes a recording while a run goes on; every line is complete, also when the run is cut short.

    What is there already stays; a file that holds something else than runs of this flow is refused.
    `first_number` is the number of the next snapshot, and of the decision made from it.
    """

    def __init__(self, path: Path | str, header: RecordingHeader) -> None:
        self.path = Path(path)
        if not self.path.parent.is_dir():  # it is made for nobody who has mistyped it
            raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), str(self.path))
        self.first_number = _snapshots_held(self.path, header.flow)
        self._snapshots = PartFile.append_to(self.path)
        self._decisions = PartFile.append_to(decisions_path(self.path))
        self._snapshots.write_line(encode_header(header))

    def write_snapshot(self, snapshot: Snapshot) -> None:
        """Add what an interval showed."""
        self._snapshots.write_line(encode_snapshot(snapshot))

    def write_decision(self, entry: Entry) -> None:
        """Add the decision on the snapshot of the same number."""
        self._decisions.write_line(msgspec.json.encode(entry))

    def close(self) -> None:
        self._snapshots.close()
        self._decisions.close()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


def read_snapshots(path: Path | str) -> Iterator[Snapshot]:
    """The snapshots of a recording, in order, of all its runs."""
    return _decoded(path, lambda line: None if decode_header(line) else decode_snapshot(line))


def read_headers(path: Path | str) -> Iterator[RecordingHeader]:
    """One for each run of a recording, in order; an old recording has none."""
    return _decoded(path, decode_header)


def read_header(path: Path | str) -> RecordingHeader | None:
    """That of the last run."""
    return next(reversed(list(read_headers(path))), None)


def read_decisions(path: Path | str) -> Iterator[Entry]:
    """The entries of the decision log that belongs to the recording `path`."""
    return _decoded(decisions_path(Path(path)), msgspec.json.Decoder(Entry).decode)


def _decoded(path: Path | str, decode: Callable[[bytes], T | None]) -> Iterator[T]:
    """Line by line, without what is None; a last line that has no end yet is still being written."""
    with Path(path).open("rb") as lines:
        for number, line in enumerate(lines, start=1):
            if not line.strip():
                continue
            try:
                value = decode(line)
            except ValueError as error:
                if line.endswith(b"\n"):
                    raise RecordingError(f"{path}, line {number}: {error}") from error
                return
            if value is not None:
                yield value


def _snapshots_held(path: Path, flow: str) -> int:
    """How many there are in a recording that is to be gone on with; it must be one, and of this flow."""
    if not path.exists():
        return 0
    header = read_header(path)
    if header is not None and header.flow != flow:
        raise RecordingError(
            f"{path}: holds runs of flow {header.flow!r}, not of {flow!r}; choose another file"
        )
    try:
        next(read_snapshots(path), None)
    except RecordingError as error:
        raise RecordingError(f"{path}: is not a recording, {error}; choose another file") from None
    with path.open("rb") as lines:
        return sum(
            1 for line in lines if line.endswith(b"\n") and line.strip() and decode_header(line) is None
        )
