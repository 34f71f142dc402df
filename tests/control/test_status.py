"""The status file: of a recording, of a checkpoint, and what is said when it is not there."""

from pathlib import Path

import pytest

from penstock.control.loop import Controller
from penstock.control.recording import Recorder, RecordingError
from penstock.control.status import IN_CHECKPOINT, FlowStatus, read_status, status_path, write_status
from penstock.policy.registry import create_policy
from penstock.testing.engine import FakeEngine
from tests.control.headers import HEADER, header
from tests.control.steady_task import following, loaded


def status(**changes: object) -> FlowStatus:
    fields: dict[str, object] = {
        "flow": "primes",
        "state": "running",
        "message": "batch 0",
        "policy": "ds2",
        "applies": True,
        "interval_s": 5.0,
        "at_s": 100.0,
        "snapshot": loaded(100, 1),
    }
    return FlowStatus(**{**fields, **changes})  # type: ignore[arg-type]


def record(path: Path, intervals: int = 3) -> None:
    engine = FakeEngine(following([100.0] * intervals), {"work": 1})
    with Recorder(path, HEADER) as recorder:
        list(Controller(engine, create_policy("ds2"), engine.clock, recorder).cycles())


def test_it_is_found_in_a_checkpoint_and_beside_a_recording(tmp_path: Path) -> None:
    write_status(tmp_path / IN_CHECKPOINT, status())
    assert read_status(tmp_path) == read_status(str(tmp_path)) == status()
    recording = tmp_path / "run.jsonl"
    record(recording)
    write_status(status_path(recording), status(state="stopped"))
    assert read_status(recording) == read_status(status_path(recording)) == status(state="stopped")
    assert not list(tmp_path.glob(".*")), "nothing is left of writing it"


def test_a_recording_without_one_is_shown_by_its_lines(tmp_path: Path) -> None:
    recording = tmp_path / "run.jsonl"
    record(recording, intervals=30)
    shown = read_status(recording)
    assert (shown.flow, shown.state, shown.policy, shown.at_s) == ("run", "recorded", "ds2", 150.0)
    assert shown.snapshot == loaded(100, 1, jitter=29)
    assert [entry.number for entry in shown.decisions] == list(range(10, 30))


def test_errors_name_the_file(tmp_path: Path) -> None:
    with pytest.raises(RecordingError, match=r"penstock\.status\.json: cannot be read.*--checkpoint"):
        read_status(tmp_path)
    with pytest.raises(RecordingError, match=r"absent\.jsonl: cannot be read"):
        read_status(tmp_path / "absent.jsonl")
    (tmp_path / "empty.jsonl").touch()
    with pytest.raises(RecordingError, match=r"empty\.jsonl: holds no snapshot yet"):
        read_status(tmp_path / "empty.jsonl")
    (tmp_path / IN_CHECKPOINT).write_text("{}")
    with pytest.raises(RecordingError, match=r"is not a status: .*flow"):
        read_status(tmp_path)


def test_a_recording_of_a_killed_run_shows_the_last_decision_with_its_snapshot(tmp_path: Path) -> None:
    recording = tmp_path / "elsewhere.jsonl"
    record(recording, intervals=3)
    with Recorder(recording, HEADER) as recorder:
        recorder.write_snapshot(loaded(900, 1), at_s=5.0)
    shown = read_status(recording)
    assert (shown.flow, shown.message, shown.decisions[-1].number) == ("run", "4 intervals", 2)
    assert shown.snapshot == loaded(100, 1, jitter=2)


def test_a_recording_without_decisions_is_shown_by_its_header(tmp_path: Path) -> None:
    recording = tmp_path / "run.jsonl"
    with Recorder(recording, header(flow="primes", policy="mape", started_at_s=77.0)) as recorder:
        recorder.write_snapshot(loaded(100, 1), at_s=5.0)
    shown = read_status(recording)
    assert (shown.flow, shown.policy, shown.at_s) == ("primes", "mape", 77.0)
