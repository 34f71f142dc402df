"""What commits are by default, and how far apart."""

from typing import Any

import pytest

from penstock.flow.errors import FlowError
from penstock.spark.commits import Commits, commits_of


def test_with_a_checkpoint_commits_are_marks_a_second_apart() -> None:
    assert commits_of(None, None, has_checkpoint=True) == Commits(1_000, by_marks=True)
    assert commits_of("0.1 s", None, has_checkpoint=True).every_ms == 100
    assert commits_of("10 min", None, has_checkpoint=True) == Commits(600_000, by_marks=True)
    assert commits_of("10 min", None, has_checkpoint=True).batch_ms == 12 * 3_600_000


def test_boundaries_are_far_apart() -> None:
    assert commits_of(None, None, has_checkpoint=False) == Commits(600_000, by_marks=False)
    asked = commits_of(None, "boundaries", has_checkpoint=True)
    assert asked == Commits(30_000, by_marks=False, asked=True)
    assert asked.batch_ms == 30_000
    assert commits_of(None, "marks", has_checkpoint=False) == Commits(1_000, by_marks=True, asked=True)


@pytest.mark.parametrize("wrong", ["0.5 s", "13 h", 0])
def test_too_often_and_too_seldom_are_refused(wrong: str | float) -> None:
    with pytest.raises(FlowError, match="is not between 1 s and 12 h"):
        commits_of(wrong, "boundaries", has_checkpoint=True)
    with pytest.raises(FlowError, match="a commit every 50 ms is not between 100 ms and 12 h"):
        commits_of("50 ms", None, has_checkpoint=True)


def test_other_words_are_refused() -> None:
    wrong: Any = "batches"
    with pytest.raises(FlowError, match='commit_by=\'batches\' is not "marks" or "boundaries"'):
        commits_of(None, wrong, has_checkpoint=True)
