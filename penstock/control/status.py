"""A controlled flow at a glance, in a small file that is replaced after every decision.

It lies beside a recording (`run.status.json`) or in the directory of a checkpoint, so that `penstock status`
needs no port and also works when the flow has ended.
"""

from pathlib import Path

import msgspec

from penstock.control.by_hand import Mode
from penstock.control.decision_log import Entry
from penstock.control.recording import (
    RecordingError,
    decisions_path,
    read_decisions,
    read_header,
    read_snapshots,
)
from penstock.stats.snapshot import Snapshot

IN_CHECKPOINT = "penstock.status.json"
DECISIONS_KEPT = 20


class FlowStatus(msgspec.Struct, frozen=True, kw_only=True):
    """What a flow and its controller were doing at `at_s` (seconds since 1970)."""

    flow: str
    state: str
    message: str
    policy: str
    applies: bool
    mode: Mode = "on"
    interval_s: float
    at_s: float
    problem: str | None = None
    snapshot: Snapshot | None = None
    decisions: list[Entry] = []


def manner(status: FlowStatus) -> str:
    """How its policy is used, to be put behind its name; nothing if its decisions are carried out."""
    if status.mode == "off":
        return ", off"
    return "" if status.applies else ", only recommending"


def status_path(recording: Path) -> Path:
    """Where the status of the run that writes `recording` is."""
    return recording.with_name(f"{recording.stem}.status.json")


def write_status(path: Path, status: FlowStatus) -> None:
    """Replace the file as a whole: a reader sees the old one or the new one."""
    beside = path.with_name(f".{path.name}.new")
    beside.write_bytes(msgspec.json.encode(status))
    beside.replace(path)


def read_status(place: Path | str) -> FlowStatus:
    """The status of a checkpoint directory, of a recording, or of a status file itself.

    A recording without one (of the simulator, or carried elsewhere) is shown by its last lines.
    """
    place = Path(place)
    path = place / IN_CHECKPOINT if place.is_dir() else place
    if not place.is_dir() and path.suffix == ".jsonl":
        if not status_path(place).exists():
            return _from_recording(place)
        path = status_path(place)
    try:
        return msgspec.json.decode(path.read_bytes(), type=FlowStatus)
    except OSError as error:
        raise RecordingError(
            f"{path}: cannot be read: {error.strerror}; a flow with a policy writes it"
            " beside its --recording or into its --checkpoint"
        ) from None
    except msgspec.DecodeError as error:
        raise RecordingError(f"{path}: is not a status: {error}") from None


def _from_recording(recording: Path) -> FlowStatus:
    try:
        header = read_header(recording)
        snapshots = list(read_snapshots(recording))
        decisions = list(read_decisions(recording)) if decisions_path(recording).exists() else []
    except OSError as error:
        raise RecordingError(f"{recording}: cannot be read: {error.strerror}") from None
    if not snapshots:
        raise RecordingError(f"{recording}: holds no snapshot yet")
    last = decisions[-1] if decisions else None
    policy, since_s = ("none", 0.0) if header is None else (header.policy, header.started_at_s)
    # A run that was killed left a snapshot without its decision: what is shown belongs together.
    shown = -1 if last is None or last.number >= len(snapshots) else last.number
    return FlowStatus(
        flow=recording.stem if header is None else header.flow,
        state="recorded",
        message=f"{len(snapshots)} intervals",
        policy=policy if last is None else last.decision.policy,
        applies=True,
        interval_s=snapshots[shown].interval_s,
        at_s=since_s if last is None else last.at_s,
        snapshot=snapshots[shown],
        decisions=decisions[-DECISIONS_KEPT:],
    )
