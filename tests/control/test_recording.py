"""Recordings: what is written can be read, decided again, and complains with file and line."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from penstock.control.loop import Controller
from penstock.control.recording import (
    RecordedEngine,
    Recorder,
    RecordingError,
    decisions_path,
    read_decisions,
    read_snapshots,
)
from penstock.policy.registry import create_policy
from penstock.sim.run import simulate
from tests.sim.flows import pipeline

if TYPE_CHECKING:
    from pathlib import Path


@pytest.fixture
def recording(tmp_path: Path) -> Path:
    path = tmp_path / "run.jsonl"
    with Recorder(path) as recorder:
        simulate(pipeline(), create_policy("nephele"), seed=3, seconds=20.0, recorder=recorder)
    return path


def test_a_recording_has_a_snapshot_and_a_decision_per_interval(recording: Path) -> None:
    assert len(list(read_snapshots(recording))) == 4
    entries = list(read_decisions(recording))
    assert [entry.number for entry in entries] == [0, 1, 2, 3]
    assert [entry.at_s for entry in entries] == [5.0, 10.0, 15.0, 20.0]


def test_an_entry_tells_what_was_observed_one_interval_later(recording: Path) -> None:
    entries = list(read_decisions(recording))
    later = list(read_snapshots(recording))[1]
    seen = entries[0].observed
    assert seen is not None
    assert seen.parallelism == {"work": later.tasks["work"].parallelism}
    assert seen.utilization == {"work": later.tasks["work"].utilization}
    assert seen.latency_ms["c"] is not None
    assert entries[-1].observed is None


def test_the_same_policy_decides_the_same_from_the_recording(recording: Path) -> None:
    replay = RecordedEngine(recording)
    list(Controller(replay, create_policy("nephele"), clock=lambda: 0.0).cycles())
    assert replay.decisions == [entry.decision for entry in read_decisions(recording)]


def test_a_bad_line_is_named(recording: Path) -> None:
    lines = recording.read_text().splitlines()
    recording.write_text("\n".join([lines[0], '{"version": 1}', ""]))
    with pytest.raises(RecordingError, match=r"run\.jsonl, line 2: "):
        list(read_snapshots(recording))
    decisions_path(recording).write_text("{\n")
    with pytest.raises(RecordingError, match=r"run\.decisions\.jsonl, line 1: "):
        list(read_decisions(recording))


def test_a_line_that_is_still_being_written_is_left_out(recording: Path) -> None:
    whole = recording.read_bytes()
    recording.write_bytes(whole[:-20])
    assert len(list(read_snapshots(recording))) == 3
    log = decisions_path(recording)
    log.write_bytes(log.read_bytes()[:-20])
    assert len(list(read_decisions(recording))) == 3
