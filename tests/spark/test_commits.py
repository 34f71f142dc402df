"""How far apart commits are, by default and at most."""

import pytest

from penstock.flow.errors import FlowError
from penstock.spark.commits import commit_ms


def test_who_can_be_resumed_commits_often() -> None:
    assert commit_ms(None, has_checkpoint=True) == 30_000
    assert commit_ms(None, has_checkpoint=False) == 600_000
    assert commit_ms("5 s", has_checkpoint=True) == commit_ms(5, has_checkpoint=False) == 5_000


@pytest.mark.parametrize("wrong", ["0.5 s", "13 h", 0])
def test_too_often_and_too_seldom_are_refused(wrong: str | float) -> None:
    with pytest.raises(FlowError, match="is not between 1 s and 12 h"):
        commit_ms(wrong, has_checkpoint=True)
