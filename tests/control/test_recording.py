"""Recordings: what is written can be read, decided again, and complains with file and line."""

from pathlib import Path

import pytest

from penstock.control.events import Event
from penstock.control.loop import Controller
from penstock.control.recorded_snapshot import RecordedSnapshot
from penstock.control.recording import (
    Recorder,
    RecordingError,
    decisions_path,
    decode_line,
    delete_recording,
    read_decisions,
    read_events,
    read_header,
    read_headers,
    read_snapshots,
)
from penstock.policy.registry import create_policy
from penstock.sim.run import simulate
from penstock.testing.engine import FakeEngine
from tests.control.headers import HEADER, header
from tests.control.steady_task import following, loaded
from tests.sim.flows import pipeline


@pytest.fixture
def recording(tmp_path: Path) -> Path:
    path = tmp_path / "run.jsonl"
    with Recorder(path, HEADER) as recorder:
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
    snapshots = list(read_snapshots(recording))
    engine = FakeEngine(lambda number, _: snapshots[number] if number < len(snapshots) else None)
    list(Controller(engine, create_policy("nephele"), clock=lambda: 0.0).cycles())
    assert engine.applied == [entry.decision for entry in read_decisions(recording)]


def test_a_bad_line_is_named(recording: Path) -> None:
    lines = recording.read_text().splitlines()
    recording.write_text("\n".join([lines[1], '{"version": 1}', ""]))
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


def run(path: Path | str, rates: int, killed: bool = False, policy: str = "ds2") -> None:
    """Intervals of a flow that is started (again); a run that is killed leaves half a line in both files."""
    recorder = Recorder(path, header(policy=policy))
    engine = FakeEngine(following([100.0] * rates), {"work": 1})
    controller = Controller(engine, create_policy(policy), engine.clock, recorder)
    for _ in range(rates):
        controller.turn()
    if not killed:
        controller.close()
    recorder.close()
    for torn in (path, decisions_path(path)) if killed else ():
        with open(torn, "ab") as file:  # noqa: PTH123 - a path may be a text
            file.write(b'{"number": 9, "at')


def test_a_restarted_run_is_appended_with_a_header_of_its_own(tmp_path: Path) -> None:
    path = tmp_path / "run.jsonl"
    run(path, 3)
    before = path.read_bytes()
    run(str(path), 2, policy="threshold")
    assert path.read_bytes().startswith(before)
    assert [one.policy for one in read_headers(path)] == ["ds2", "threshold"]
    assert read_header(path) == header(policy="threshold")
    assert list(read_snapshots(path)) == [loaded(100, 1, jitter=n) for n in (0, 1, 2, 0, 1)]
    entries = list(read_decisions(path))
    assert [entry.number for entry in entries] == [0, 1, 2, 3, 4]
    assert [entry.decision.policy for entry in entries] == ["ds2"] * 3 + ["threshold"] * 2


def test_after_a_kill_numbers_still_join_decisions_to_their_snapshots(tmp_path: Path) -> None:
    """The last decision of a killed run is not recorded, as nothing was observed after it."""
    path = tmp_path / "run.jsonl"
    run(path, 3, killed=True)
    run(path, 2, killed=True)
    run(path, 2)
    assert len(list(read_snapshots(path))) == 7
    assert [entry.number for entry in read_decisions(path)] == [0, 1, 3, 5, 6]


def test_a_recording_without_a_header_is_read_and_gone_on_with(tmp_path: Path, recording: Path) -> None:
    old = tmp_path / "old.jsonl"
    old.write_bytes(b"".join(recording.read_bytes().splitlines(keepends=True)[1:]))
    assert (len(list(read_snapshots(old))), list(read_headers(old)), read_header(old)) == (4, [], None)
    recorder = Recorder(old, HEADER)
    assert recorder.first_number == 4
    recorder.close()


def test_what_is_no_recording_of_the_flow_is_not_appended_to(tmp_path: Path, recording: Path) -> None:
    whole = recording.read_bytes()
    with pytest.raises(RecordingError, match=r"run\.jsonl: holds runs of flow 'run', not of 'other'; choose"):
        Recorder(recording, header(flow="other"))
    notes = tmp_path / "notes.txt"
    notes.write_text("buy milk\n")
    with pytest.raises(RecordingError, match=r"notes\.txt: is not a recording, .*; choose another file"):
        Recorder(notes, HEADER)
    assert (recording.read_bytes(), notes.read_text()) == (whole, "buy milk\n")
    with pytest.raises(
        RecordingError, match=r"run\.jsonl: cannot be written: there is no directory .*absent"
    ):
        Recorder(tmp_path / "absent" / "run.jsonl", HEADER)
    with pytest.raises(RecordingError, match=r": cannot be read: Is a directory; choose another file"):
        Recorder(tmp_path, HEADER)


def test_each_snapshot_has_its_time_and_the_boundary_that_disturbed_it(tmp_path: Path) -> None:
    path = tmp_path / "run.jsonl"
    engine = FakeEngine(following([900.0] * 3), {"work": 1}, gap_ms=500.0)
    with Recorder(path, HEADER) as recorder:
        list(Controller(engine, create_policy("ds2"), engine.clock, recorder).cycles())
    lines = [decode_line(line) for line in path.read_bytes().splitlines()[1:]]
    shown = [(line.at_s, line.stood_still_ms) for line in lines if isinstance(line, RecordedSnapshot)]
    assert shown == [(5.0, None), (10.0, 500.0), (15.0, None)]


def test_a_recording_of_another_version_is_refused_and_left_alone(recording: Path) -> None:
    recording.write_bytes(recording.read_bytes().replace(b'"version":2', b'"version":9', 1))
    whole = recording.read_bytes()
    with pytest.raises(RecordingError, match=r"line 1: recording\.version: 9 is not known; .* reads 1 and 2"):
        Recorder(recording, HEADER)
    with pytest.raises(RecordingError, match=r"recording\.version: 9"):
        list(read_snapshots(recording))
    assert recording.read_bytes() == whole


def test_a_recording_is_deleted_with_its_decisions_and_events(recording: Path) -> None:
    with Recorder(recording, HEADER) as recorder:
        recorder.write_event(Event(at_s=1.0, kind="commit", text="batch 0 is committed"))
    assert [event.text for event in read_events(recording)] == ["batch 0 is committed"]
    delete_recording(recording)
    delete_recording(str(recording))
    assert list(recording.parent.iterdir()) == []
