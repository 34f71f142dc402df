"""A day's recording is on the screen within three seconds; to be run where nothing else does."""

import time
from pathlib import Path

import pytest

from penstock.control.decision_log import Entry
from penstock.control.recording import Recorder
from penstock.dashboard.recorded import RecordedFlow
from penstock.dashboard.server import DashboardServer
from tests.control.headers import header
from tests.dashboard.chromium import Browser
from tests.dashboard.flows import BEGAN_S, interval
from tests.report.recordings import decision

A_DAY = 17_280
"""Intervals of 5 s."""
WITHIN_S = 3.0


@pytest.mark.slow
def test_a_day_is_shown_within_three_seconds(chrome: Browser, tmp_path: Path) -> None:
    path = tmp_path / "day.jsonl"
    with Recorder(path, header(flow="day", policy="nephele", started_at_s=BEGAN_S)) as recorder:
        for number in range(A_DAY):
            at_s = BEGAN_S + 5.0 * (number + 1)
            recorder.write_snapshot(interval(number % 4), at_s=at_s)
            recorder.write_decision(Entry(number=number, at_s=at_s, decision=decision(2)))
    began_s = time.perf_counter()
    serving = DashboardServer(RecordedFlow(path), 0)
    read_s = time.perf_counter() - began_s
    try:
        page = chrome.page(serving.url)
        page.until(f"document.body.dataset.shown === '{A_DAY - 1}' && document.querySelector('.decisions')")
        shown_s = time.perf_counter() - began_s
        assert page.legend("c")["mean"] == "14.00 ms"
        assert page.problems() == []
    finally:
        serving.close()
    print(f"a day: read after {read_s:.2f} s, shown after {shown_s:.2f} s")
    assert shown_s < WITHIN_S
