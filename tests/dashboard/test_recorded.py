"""A recording is read once, quickly, and what is wrong with one is said."""

from pathlib import Path

import msgspec
import pytest
from typer.testing import CliRunner

from penstock.cli.main import app
from penstock.control.decision_log import Entry
from penstock.control.recording import Recorder, RecordingError, read_decisions, read_log
from penstock.dashboard.recorded import RecordedFlow
from penstock.stats.snapshot import encode_snapshot
from tests.control.headers import HEADER
from tests.dashboard.flows import interval, recorded
from tests.report.recordings import decision, snapshot


def test_what_people_decided_is_in_the_log_and_not_among_the_policys(tmp_path: Path) -> None:
    path = recorded(tmp_path / "run.jsonl", 2)
    with Recorder(path, HEADER_OF_FLOW) as recorder:
        recorder.write_decision(Entry(number=2, at_s=1767225611.0, decision=decision(5), by="dashboard"))
    assert [entry.by for entry in read_log(path)] == [None, None, "dashboard"]
    assert [entry.number for entry in read_decisions(path)] == [0, 1]
    told = RecordedFlow(path).decisions(2e9, 10, changes=True)
    assert [one.by for one in told] == ["dashboard", None, None]


HEADER_OF_FLOW = msgspec.structs.replace(HEADER, flow="by-hand")


def test_recordings_that_cannot_be_shown_are_named(tmp_path: Path) -> None:
    empty, mixed = tmp_path / "empty.jsonl", tmp_path / "mixed.jsonl"
    empty.touch()
    other = msgspec.structs.replace(snapshot(), tasks={**snapshot().tasks, "more": snapshot().tasks["sink"]})
    mixed.write_bytes(encode_snapshot(snapshot()) + b"\n" + encode_snapshot(other) + b"\n")
    for path, complaint in (
        (tmp_path / "missing.jsonl", "cannot be read: No such file"),
        (empty, "holds no snapshot yet"),
        (mixed, "line 2: other tasks, streams or constraints"),
    ):
        with pytest.raises(RecordingError, match=complaint):
            RecordedFlow(path)
    refused = CliRunner().invoke(app, ["dashboard", str(empty)])
    assert refused.exit_code == 2
    assert "holds no snapshot yet" in refused.output


def test_half_a_line_at_the_end_is_still_being_written(tmp_path: Path) -> None:
    path = recorded(tmp_path / "run.jsonl", 2)
    with path.open("ab") as file:
        file.write(b'{"at_s": 1.0, "snap')
    assert RecordedFlow(path).timeline.end == 2


def test_only_the_last_intervals_are_kept_of_a_flow_that_runs() -> None:
    from penstock.dashboard.timeline import Timeline

    timeline = Timeline(kept=3)
    for number in range(5):
        timeline.add(interval(number % 4), at_s=float(number))
    assert (timeline.end, timeline.columns().first, timeline.columns().times) == (5, 2, [2.0, 3.0, 4.0])
    assert timeline.columns(4).times == [4.0]
    assert timeline.interval(1) is None
    assert timeline.interval(2) is not None
