"""The board shows the totals."""

import json
from collections import Counter
from pathlib import Path

from hypothesis import given
from hypothesis import strategies as st

from penstock.apps.board import Board, read_board


@given(st.lists(st.dictionaries(st.sampled_from("abc"), st.integers(1, 9))))
def test_counts_are_added_up(parts: list[dict[str, int]]) -> None:
    board, expected = Board(), Counter[str]()
    for part in parts:
        board.write(part)
        expected.update(part)
    assert board.totals == expected


def test_the_file_follows_at_every_commit_and_begins_with_the_largest(tmp_path: Path) -> None:
    path = tmp_path / "new" / "board.json"
    board = Board(path)
    board.write({"a": 1})
    board.flush()
    assert read_board(path) == {"a": 1}
    board.write({"b": 2})
    board.close()
    assert list(json.loads(path.read_text())) == ["b", "a"]
    assert [entry.name for entry in path.parent.iterdir()] == ["board.json"]


def test_without_a_path_nothing_is_written() -> None:
    board = Board()
    board.write({"a": 1})
    board.close()
    assert board.totals == {"a": 1}
