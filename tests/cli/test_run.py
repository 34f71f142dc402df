"""`penstock run`: what it shows, and how it ends."""

import io
import json
import os
import signal
import subprocess
import sys
import time
from collections import Counter
from pathlib import Path

import pytest
from rich.console import Console

from penstock.cli.run import _told_to_end
from penstock.cli.run_view import metrics_table
from penstock.observe.reported import CommitTotals, Metrics, TaskMetrics
from penstock.stats.sketch import Sketch

FLOW = """
import penstock
flow = penstock.Flow("told", ids=True)
numbers = flow.source(penstock.paced(lambda partition, index, seed: index, 500), name="numbers")
numbers.sink(penstock.dedup_jsonl("out"), name="out", parallelism=2)
"""


def test_the_first_signal_sets_the_flag_and_the_second_acts_as_before() -> None:
    before = signal.getsignal(signal.SIGTERM)
    with _told_to_end() as told:
        assert not told.is_set()
        os.kill(os.getpid(), signal.SIGTERM)
        assert told.wait(5)
        assert signal.getsignal(signal.SIGTERM) == before
    assert signal.getsignal(signal.SIGTERM) == before


def test_the_table_shows_tasks_and_latency_at_sinks() -> None:
    sketch = Sketch()
    for value in (1.0, 2.0, 3.0):
        sketch.add(value)
    metrics = Metrics({"work": TaskMetrics(2, 8, items_in=1234), "out": TaskMetrics(1, 1)}, {"out": sketch})
    console = Console(file=io.StringIO(), width=120)
    console.print(metrics_table(metrics, "running"))
    assert isinstance(console.file, io.StringIO)
    shown = console.file.getvalue()
    assert "1,234" in shown
    assert "2/8" in shown
    assert "2.00" in shown


def test_the_table_tells_of_commits_by_marks() -> None:
    commits = CommitTotals().voided().committed(7, time.monotonic() - 2, 41.7, {"work": 2048})
    table = metrics_table(Metrics({"work": TaskMetrics(2, 8)}, {}, commits=commits), "running")
    assert table.title == "running, 1 commits, the last, epoch 7, 2.0 s ago, in 42 ms, 1 epochs void"
    state = next(column for column in table.columns if column.header == "state")
    assert [*state.cells] == ["2.0 KiB"]
    assert metrics_table(Metrics({}, {}, commits=CommitTotals()), "running").title == "running"


def numbers_in(directory: Path) -> list[int]:
    parts = directory.glob("part-*.jsonl")
    return [json.loads(line)["item"] for part in parts for line in part.read_text().splitlines()]


@pytest.mark.spark
def test_sigterm_drains_commits_and_exits_with_0_and_the_next_run_goes_on(tmp_path: Path) -> None:
    (tmp_path / "told_flow.py").write_text(FLOW)
    command = [sys.executable, "-c", "from penstock.cli.main import app; app()"]
    reached = 0
    for _ in range(2):
        arguments = ["run", "told_flow:flow", "--checkpoint", "checkpoint", "--dashboard", "0"]
        with (
            (tmp_path / "said").open("wb") as said,
            subprocess.Popen(
                [*command, *arguments], cwd=tmp_path, stdout=subprocess.DEVNULL, stderr=said
            ) as running,
        ):
            deadline = time.monotonic() + 90
            while len(numbers_in(tmp_path / "out")) < reached + 300 and time.monotonic() < deadline:
                time.sleep(0.2)
            running.send_signal(signal.SIGTERM)
            assert running.wait(60) == 0
        reached = len(numbers_in(tmp_path / "out"))
    assert "dashboard at http://127.0.0.1:" in (tmp_path / "said").read_text()
    counts = Counter(numbers_in(tmp_path / "out"))
    assert sorted(counts) == list(range(reached)), "nothing lost"
    assert set(counts.values()) == {1}, "nothing twice"
    assert reached >= 600
