"""Commits by epoch marks, as other terminals see them."""

import json
import time
from dataclasses import replace
from pathlib import Path

import pytest
from rich.console import Console
from typer.testing import CliRunner

from penstock.cli.commit_words import commit_words, heavy_words
from penstock.cli.live_view import live_view
from penstock.cli.main import app
from penstock.observe.reported import CommitTotals
from penstock.operate.commands import Commands, commits_now
from penstock.operate.protocol import AskStatus, FlowNow
from penstock.stats.key_load import KeyLoad
from penstock.stats.snapshot import KeyGroupStats, Snapshot, TaskStats
from tests.operate.fake_job import FakeJob, greeting, opened


def job() -> FakeJob:
    fake = FakeJob()
    done = CommitTotals().voided().committed(42, time.monotonic() - 0.5, 85.4, {"work": 3 << 20})
    fake.commits = replace(done, rollbacks=2)
    return fake


def shown(fake: FakeJob) -> str:
    now = Commands(fake).answer(AskStatus())
    assert isinstance(now, FlowNow)
    console = Console(width=200)
    with console.capture() as capture:
        console.print(live_view(greeting(), now))
    return capture.get()


def test_the_live_view_tells_the_last_commit_and_the_size_of_state() -> None:
    text = shown(job())
    assert "1 commits, the last, epoch 42, 0.5 s ago, in 85 ms, 1 epochs void, rolled back 2 times" in text
    assert "3.0 MiB" in text
    without = shown(FakeJob())
    assert "commits" not in without
    assert "state" not in without


def test_the_live_view_tells_the_heaviest_groups_also_without_a_policy() -> None:
    fake = job()
    assert "heaviest" not in shown(fake)
    fake.keyed = {"numbers->work": KeyLoad({7: 60, 9: 20, 11: 10, 3: 5}, [100])}
    words = "work: heaviest groups of keys 7 (60% of its items), 9 (20% of its items), 11 (10% of its items)"
    assert words in shown(fake)


def test_a_flow_that_has_committed_nothing_yet_says_so() -> None:
    assert commit_words(commits_now(CommitTotals())) == ["0 commits"]
    assert commit_words(commits_now(None)) == []


def test_flows_are_listed_with_their_last_commit(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(tmp_path))
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    monkeypatch.setenv("COLUMNS", "200")
    with opened(tmp_path / "penstock", job()):
        listed = CliRunner().invoke(app, ["ps"]).output
        assert "epoch 42, 0." in listed
        told = json.loads(CliRunner().invoke(app, ["ps", "--json"]).output)
    assert (told["commits"]["epoch"], told["commits"]["rollbacks"]) == (42, 2)


def test_the_heaviest_groups_are_named_if_they_are_known() -> None:
    groups = [KeyGroupStats(group=number, processed=10.0 * number) for number in range(5)]
    tasks = {
        "count": TaskStats(kind="task", parallelism=1, key_groups=groups, processed_total=200.0),
        "out": TaskStats(kind="sink", parallelism=1),
    }
    assert [*heavy_words(Snapshot(interval_s=1, tasks=tasks))] == [
        "count: heaviest groups of keys 4 (20% of its items), 3 (15% of its items), 2 (10% of its items)"
    ]
