"""A run on paper: its snapshots as `penstock decide` reads them, and beside them what came of it.

`run.jsonl` holds one snapshot per line. `run.decisions.jsonl` holds one entry per line: the decision made
from the snapshot of the same number, its effect and, one interval later, what was observed.
"""

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from pathlib import Path
from types import TracebackType
from typing import IO, TypeVar

import msgspec

from penstock.control.decision_log import Entry
from penstock.policy.decision import Decision
from penstock.stats.snapshot import Snapshot, decode_snapshot, encode_snapshot

T = TypeVar("T")


class RecordingError(ValueError):
    """A recording that cannot be read; the message names the file and the line."""


def decisions_path(path: Path) -> Path:
    """Where the decisions of the recording `path` are."""
    return path.with_name(f"{path.stem}.decisions.jsonl")


class Recorder(AbstractContextManager["Recorder"]):
    """Writes a recording while a run goes on; every line is complete, also when the run is cut short."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._snapshots: IO[bytes] = path.open("wb", buffering=0)
        self._decisions: IO[bytes] = decisions_path(path).open("wb", buffering=0)

    def write_snapshot(self, snapshot: Snapshot) -> None:
        """Add what an interval showed."""
        self._snapshots.write(encode_snapshot(snapshot) + b"\n")

    def write_decision(self, entry: Entry) -> None:
        """Add the decision on the snapshot of the same number."""
        self._decisions.write(msgspec.json.encode(entry) + b"\n")

    def close(self) -> None:
        self._snapshots.close()
        self._decisions.close()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


def read_snapshots(path: Path) -> Iterator[Snapshot]:
    """The snapshots of a recording, in order."""
    return _decoded(path, decode_snapshot)


def read_decisions(path: Path) -> Iterator[Entry]:
    """The entries of the decision log that belongs to the recording `path`."""
    return _decoded(decisions_path(path), msgspec.json.Decoder(Entry).decode)


def _decoded(path: Path, decode: Callable[[bytes], T]) -> Iterator[T]:
    """Line by line; a last line that has no end yet is still being written, and left out."""
    with path.open("rb") as lines:
        for number, line in enumerate(lines, start=1):
            if not line.strip():
                continue
            try:
                yield decode(line)
            except ValueError as error:
                if line.endswith(b"\n"):
                    raise RecordingError(f"{path}, line {number}: {error}") from error


class RecordedEngine:
    """An engine that shows a recording; decisions are taken note of and change nothing."""

    def __init__(self, path: Path) -> None:
        self._snapshots = read_snapshots(path)
        self.decisions: list[Decision] = []

    def observe(self) -> Snapshot | None:
        return next(self._snapshots, None)

    def apply(self, decision: Decision) -> None:
        self.decisions.append(decision)
