"""A recording read back: its intervals on one time axis, and the decision at the end of each."""

from dataclasses import dataclass
from functools import cached_property
from itertools import accumulate
from pathlib import Path

from penstock.control.decision_log import Entry
from penstock.control.recording import (
    RecordingError,
    decisions_path,
    read_decisions,
    read_header,
    read_snapshots,
)
from penstock.policy.measured import sequence_latency_ms
from penstock.report.errors import PictureError
from penstock.stats.snapshot import ConstraintSpec, Snapshot


@dataclass(frozen=True)
class History:
    """What a run showed; intervals follow each other without a gap, and the first begins at 0 s."""

    name: str
    snapshots: tuple[Snapshot, ...]
    entries: tuple[Entry, ...] = ()
    simulated: bool | None = None
    """None if the recording does not tell."""

    @property
    def title(self) -> str:
        """Its name, and where its figures come from."""
        if self.simulated is None:
            return self.name
        return f"{self.name}, {'simulated' if self.simulated else 'measured on Spark'}"

    @cached_property
    def ends_s(self) -> list[float]:
        """When each interval ended."""
        return list(accumulate(snapshot.interval_s for snapshot in self.snapshots))

    @cached_property
    def begins_s(self) -> list[float]:
        """When each interval began."""
        return [0.0, *self.ends_s[:-1]]

    @cached_property
    def decided(self) -> dict[int, Entry]:
        """The decisions by the numbers of their snapshots; a run that was killed left one without."""
        return {entry.number: entry for entry in self.entries}

    @property
    def policy(self) -> str | None:
        """Who decided, None if nobody did."""
        return self.entries[-1].decision.policy if self.entries else None

    @property
    def constraints(self) -> list[ConstraintSpec]:
        """The constraints at the end of the run."""
        return self.snapshots[-1].constraints

    def specs(self, constraint: str) -> list[ConstraintSpec | None]:
        """The constraint as it was in every interval; bounds may change while a flow runs."""
        return [
            next((spec for spec in snapshot.constraints if spec.name == constraint), None)
            for snapshot in self.snapshots
        ]

    def latencies_ms(self, constraint: str) -> list[float | None]:
        """The mean latency of a constraint's sequence in every interval."""
        return [
            None if spec is None else sequence_latency_ms(snapshot, spec)
            for snapshot, spec in zip(self.snapshots, self.specs(constraint), strict=True)
        ]

    def p95s_ms(self, constraint: str) -> list[float | None]:
        """The 95th percentile of every interval, where it was measured."""
        return [None if spec is None else spec.p95_ms for spec in self.specs(constraint)]

    def scaled_tasks(self) -> list[str]:
        """The elastic tasks; all that are neither source nor sink if there are none."""
        tasks = self.snapshots[-1].tasks
        inner = [name for name, task in tasks.items() if task.kind == "task"]
        return [name for name in inner if tasks[name].elastic] or inner


def read_history(path: Path | str) -> History:
    """The recording `path`; decisions beside it are read if they are there."""
    try:
        snapshots = tuple(read_snapshots(path))
        entries = tuple(read_decisions(path)) if decisions_path(path).exists() else ()
        header = read_header(path)
    except OSError as error:
        raise PictureError(f"recording {path} cannot be read: {error.strerror}") from None
    except RecordingError as error:
        raise PictureError(f"recording {error}") from None
    if not snapshots:
        raise PictureError(f"recording {path} is empty; it must hold at least one snapshot")
    for number, snapshot in enumerate(snapshots):
        if snapshot.tasks.keys() != snapshots[0].tasks.keys():
            raise PictureError(
                f"recording {path}: snapshot {number} has other tasks than those before it"
                f" ({', '.join(snapshot.tasks)}); record flows that differ in files of their own"
            )
    # A simulated run counts its time from its start, one on Spark since 1970.
    simulated = None if header is None else header.started_at_s == 0
    return History(Path(path).stem, snapshots, entries, simulated)
