"""How far apart commits are, by default and at most."""

import pytest

import penstock as ps
from penstock.flow.errors import FlowError
from penstock.spark.commits import batch_ms, commit_ms, unchained
from tests.spark.items import numbered


def test_who_can_be_resumed_commits_often() -> None:
    assert commit_ms(None, has_checkpoint=True) == 30_000
    assert commit_ms(None, has_checkpoint=False) == 600_000
    assert commit_ms("5 s", has_checkpoint=True) == commit_ms(5, has_checkpoint=False) == 5_000


@pytest.mark.parametrize("wrong", ["0.5 s", "13 h", 0])
def test_too_often_and_too_seldom_are_refused(wrong: str | float) -> None:
    with pytest.raises(FlowError, match="is not between 1 s and 12 h"):
        commit_ms(wrong, has_checkpoint=True)


def test_marks_may_be_close_together_and_leave_batches_long() -> None:
    assert commit_ms(None, has_checkpoint=False, marks=True) == 1_000
    assert commit_ms("0.1 s", has_checkpoint=True, marks=True) == 100
    with pytest.raises(FlowError, match="is not between 100 ms and 12 h"):
        commit_ms("50 ms", has_checkpoint=True, marks=True)
    assert batch_ms(100, marks=True) == 12 * 3_600_000
    assert batch_ms(30_000, marks=False) == 30_000


def test_tasks_keep_processes_of_their_own_where_commits_are_marks() -> None:
    flow = ps.Flow("marked")
    flow.source(numbered(1), name="numbers").map(str, name="text").sink(ps.jsonl("there"), name="out")
    assert not any(task.chain for task in unchained(flow.graph()).tasks)
