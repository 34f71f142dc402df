"""What happens to a flow becomes events, once."""

import time
from dataclasses import dataclass

from penstock.control.events import Noted
from penstock.observe.reported import CommitTotals
from tests.dashboard.flows import WatchedJob


@dataclass(frozen=True)
class Outage:
    why: str = 'a worker of task "count" died'
    began_s: float = 10.0
    ended_s: float = 11.5
    replayed: int = 1200


def texts(noted: Noted, job: WatchedJob) -> list[str]:
    return [event.text for event in noted.news(job)]


def test_void_epochs_are_told_once_and_commits_by_marks_are_not() -> None:
    job, noted = WatchedJob(), Noted()
    job.commits = CommitTotals().committed(1, time.monotonic(), 40.0, {})
    assert texts(noted, job) == ["the flow is running"]
    job.recent_progress.append({"time_s": time.time(), "batch": 4, "tasks": {}})
    job.commits = job.commits.voided().voided().committed(4, time.monotonic(), 40.0, {})
    assert texts(noted, job) == ["2 epochs void: more waited for a mark than a task may store"]
    assert texts(noted, job) == []


def test_a_batch_that_is_over_is_committed_and_before_the_first_there_is_none() -> None:
    job, noted = WatchedJob(), Noted()
    job.recent_progress = [{"time_s": time.time(), "batch": batch, "tasks": {}} for batch in (-1, 0, 1)]
    assert texts(noted, job) == ["batch 0 is committed", "the flow is running"]


def test_a_restart_tells_to_which_epoch_the_flow_went_back() -> None:
    job, noted = WatchedJob(), Noted()
    job.commits = CommitTotals().committed(17, time.monotonic(), 40.0, {})
    job.stopped.append(Outage())
    assert "started again at epoch 17 after 1.5 s, 1,200 items replayed" in texts(noted, job)
    plain = WatchedJob()
    plain.stopped.append(Outage())
    assert "started again after 1.5 s, 1,200 items replayed" in texts(Noted(), plain)
