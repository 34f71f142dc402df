"""A run on paper: its snapshots as `penstock decide` reads them, and beside them what came of it.

`run.jsonl` holds one snapshot per line. `run.decisions.jsonl` holds one entry per line: the decision made
from the snapshot of the same number and, one interval later, what was observed.
"""

from collections.abc import Iterator
from contextlib import AbstractContextManager
from pathlib import Path
from types import TracebackType
from typing import IO

import msgspec

from penstock.policy.decision import Decision
from penstock.policy.measured import sequence_latency_ms
from penstock.stats.snapshot import Snapshot, decode_snapshot, encode_snapshot


class RecordingError(ValueError):
    """A recording that cannot be read; the message names the file and the line."""


class Observed(msgspec.Struct, frozen=True, kw_only=True):
    """What the interval after a decision showed."""

    latency_ms: dict[str, float | None]
    parallelism: dict[str, int]
    utilization: dict[str, float | None]


class Entry(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One decision in the log; `observed` is absent for the last one of a run."""

    number: int
    at_s: float
    decision: Decision
    observed: Observed | None = None


def observed_in(snapshot: Snapshot) -> Observed:
    """The figures of a snapshot by which a decision is judged."""
    elastic = snapshot.elastic_tasks()
    return Observed(
        latency_ms={c.name: sequence_latency_ms(snapshot, c) for c in snapshot.constraints},
        parallelism={name: task.parallelism for name, task in elastic.items()},
        utilization={name: task.utilization for name, task in elastic.items()},
    )


def decisions_path(path: Path) -> Path:
    """Where the decisions of the recording `path` are."""
    return path.with_name(f"{path.stem}.decisions.jsonl")


class Recorder(AbstractContextManager["Recorder"]):
    """Writes a recording while a run goes on; every line is complete, also when the run is cut short."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._snapshots: IO[bytes] = path.open("wb", buffering=0)
        self._decisions: IO[bytes] = decisions_path(path).open("wb", buffering=0)
        self._waiting: Entry | None = None

    def write(self, number: int, at_s: float, snapshot: Snapshot, decision: Decision) -> None:
        """Add a snapshot and the decision made from it; complete the entry before."""
        self._flush(observed_in(snapshot))
        self._snapshots.write(encode_snapshot(snapshot) + b"\n")
        self._waiting = Entry(number=number, at_s=at_s, decision=decision)

    def close(self) -> None:
        self._flush(None)
        self._snapshots.close()
        self._decisions.close()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def _flush(self, observed: Observed | None) -> None:
        if self._waiting is not None:
            entry = msgspec.structs.replace(self._waiting, observed=observed)
            self._decisions.write(msgspec.json.encode(entry) + b"\n")
            self._waiting = None


def read_snapshots(path: Path) -> Iterator[Snapshot]:
    """The snapshots of a recording, in order."""
    with path.open("rb") as lines:
        for number, line in enumerate(lines, start=1):
            if not line.strip():
                continue
            try:
                yield decode_snapshot(line)
            except ValueError as error:
                raise RecordingError(f"{path}, line {number}: {error}") from error


def read_decisions(path: Path) -> Iterator[Entry]:
    """The entries of the decision log that belongs to the recording `path`."""
    log = decisions_path(path)
    with log.open("rb") as lines:
        for number, line in enumerate(lines, start=1):
            try:
                yield msgspec.json.decode(line, type=Entry)
            except msgspec.DecodeError as error:
                raise RecordingError(f"{log}, line {number}: {error}") from error


class RecordedEngine:
    """An engine that shows a recording; decisions are taken note of and change nothing."""

    def __init__(self, path: Path) -> None:
        self._snapshots = read_snapshots(path)
        self.decisions: list[Decision] = []

    def observe(self) -> Snapshot | None:
        return next(self._snapshots, None)

    def apply(self, decision: Decision) -> None:
        self.decisions.append(decision)
