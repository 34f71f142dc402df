"""A run on paper: its snapshots as `penstock decide` reads them, and beside them what came of it.

`run.jsonl` holds a header, then one snapshot per line, with its time. `run.decisions.jsonl` holds one entry
per line: the decision made from the snapshot of the same number, its effect and, one interval later, what was
observed. `run.events.jsonl` holds commits, failures and restarts, one per line;
recordings of a simulation, and older ones, are without it.

A run that is started again is appended, with a header of its own; numbers go on. They count the snapshots of
the file, from 0, and so still join decisions to snapshots when a killed run left one without its decision.
"""

import errno
import os
import threading
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from pathlib import Path
from types import TracebackType
from typing import TypeVar

import msgspec

from penstock.control.decision_log import Entry
from penstock.control.events import Event
from penstock.control.recorded_snapshot import RecordedSnapshot, decode_recorded, encode_recorded
from penstock.control.recording_header import RecordingHeader, decode_header, encode_header
from penstock.io.part_file import PartFile
from penstock.stats.snapshot import Snapshot

T = TypeVar("T")


class RecordingError(ValueError):
    """A recording that cannot be read; the message names the file and the line."""


def decisions_path(path: Path | str) -> Path:
    """Where the decisions of the recording `path` are."""
    return Path(path).with_name(f"{Path(path).stem}.decisions.jsonl")


def events_path(path: Path | str) -> Path:
    """Where commits, failures and restarts of the recording `path` are, if it has them."""
    return Path(path).with_name(f"{Path(path).stem}.events.jsonl")


def delete_recording(path: Path | str) -> None:
    """Begin anew: no snapshots, decisions and events."""
    for file in (Path(path), decisions_path(path), events_path(path)):
        file.unlink(missing_ok=True)


class Recorder(AbstractContextManager["Recorder"]):
    """Writes a recording while a run goes on; every line is complete, also when the run is cut short.

    What is there already stays; a file that holds something else than runs of this flow is refused.
    `first_number` is the number of the next snapshot, and of the decision made from it.
    """

    def __init__(self, path: Path | str, header: RecordingHeader) -> None:
        self.path = Path(path)
        self.first_number = check_recording(self.path, header.flow)
        self._snapshots = _appended(self.path)
        self._decisions = _appended(decisions_path(self.path))
        self._events: PartFile | None = None
        self._snapshots.write_line(encode_header(header))
        self._is_closed = False
        self._lock = threading.Lock()  # what is decided by hand comes from other threads

    def write_snapshot(
        self,
        snapshot: Snapshot,
        *,
        at_s: float,
        stood_still_ms: float | None = None,
        is_asked: bool = True,
    ) -> None:
        """Add what an interval showed, when it ended, and how long the sources stood still at a boundary."""
        recorded = RecordedSnapshot(
            snapshot=snapshot, at_s=at_s, stood_still_ms=stood_still_ms, is_asked=is_asked
        )
        self._snapshots.write_line(encode_recorded(recorded))

    def write_decision(self, entry: Entry) -> None:
        """Add the decision on the snapshot of the same number, or one that somebody made by hand."""
        with self._lock:
            if not self._is_closed:
                self._decisions.write_line(msgspec.json.encode(entry))

    def write_event(self, event: Event) -> None:
        """Add what has happened."""
        if self._events is None:
            self._events = _appended(events_path(self.path))
        self._events.write_line(msgspec.json.encode(event))

    def close(self) -> None:
        with self._lock:
            self._is_closed = True
            self._snapshots.close()
            self._decisions.close()
            if self._events is not None:
                self._events.close()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


@dataclass(frozen=True, slots=True)
class RecordedRun:
    """One run of a recording: its header, None in an old one, and what its intervals showed."""

    header: RecordingHeader | None
    snapshots: list[RecordedSnapshot] = field(default_factory=list)


def decode_line(line: bytes | str) -> RecordingHeader | RecordedSnapshot:
    """What a line of a recording holds; a bad one is a ValueError."""
    return decode_header(line) or decode_recorded(line)


def read_snapshots(path: Path | str) -> Iterator[Snapshot]:
    """The snapshots of a recording, in order, of all its runs."""
    lines = _decoded(path, decode_line)
    return (line.snapshot for line in lines if isinstance(line, RecordedSnapshot))


def read_headers(path: Path | str) -> Iterator[RecordingHeader]:
    """One for each run of a recording, in order; an old recording has none."""
    return _decoded(path, decode_header)


def read_header(path: Path | str) -> RecordingHeader | None:
    """That of the last run."""
    return next(reversed(list(read_headers(path))), None)


def read_decisions(path: Path | str) -> Iterator[Entry]:
    """What policies decided in the recording `path`."""
    return (entry for entry in read_log(path) if entry.by is None)


def read_log(path: Path | str) -> Iterator[Entry]:
    """All of the decision log that belongs to the recording `path`, with what was decided by hand."""
    return _decoded(decisions_path(path), msgspec.json.Decoder(Entry).decode)


def read_events(path: Path | str) -> Iterator[Event]:
    """Commits, failures and restarts of the recording `path`."""
    return _decoded(events_path(path), msgspec.json.Decoder(Event).decode)


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


def check_recording(path: Path, flow: str) -> int:
    """How many snapshots there are in a file that a run of `flow` is to be appended to; refused if it cannot.

    A file that is there must be a recording of that flow. A directory is made for nobody who has mistyped it.
    """
    if not path.parent.is_dir():
        raise RecordingError(f"{path}: cannot be written: there is no directory {path.parent}")
    if not os.access(path if path.exists() else path.parent, os.W_OK):
        raise RecordingError(f"{path}: cannot be written: {os.strerror(errno.EACCES)}")
    if not path.exists():
        return 0
    try:
        header = read_header(path)
        if header is not None and header.flow != flow:
            raise RecordingError(
                f"{path}: holds runs of flow {header.flow!r}, not of {flow!r}; choose another file"
            )
        return _snapshots_held(path)
    except OSError as error:
        raise RecordingError(f"{path}: cannot be read: {error.strerror}; choose another file") from None


def _appended(path: Path) -> PartFile:
    try:
        return PartFile.append_to(path)
    except OSError as error:
        raise RecordingError(f"{path}: cannot be written: {error.strerror}") from None


def _snapshots_held(path: Path) -> int:
    try:
        next(read_snapshots(path), None)
    except RecordingError as error:
        raise RecordingError(f"{path}: is not a recording, {error}; choose another file") from None
    with path.open("rb") as lines:
        return sum(
            1 for line in lines if line.endswith(b"\n") and line.strip() and decode_header(line) is None
        )
