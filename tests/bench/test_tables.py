"""Figures as people read them."""

import io
from typing import Any

import pytest
from rich.console import Console

from penstock.bench.tables import MOST_COLUMNS, shown, tables, words


def lines(figures: dict[str, Any], width: int = 140) -> list[list[str]]:
    """The cells of every line, and titles."""
    console = Console(file=io.StringIO(), width=width)
    for table in tables(figures, "b"):
        console.print(table)
    assert isinstance(console.file, io.StringIO)
    text = console.file.getvalue()
    cells = [
        [cell.strip() for cell in line.replace("┃", "│").strip("│").split("│")] for line in text.splitlines()
    ]
    return [line for line in cells if line[0][:1] not in ("┏", "┡", "└")]


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (None, "?"),
        (True, "yes"),
        (0.123456, "0.1235"),
        (12_345.678, "12,346"),
        (1_000_000, "1,000,000"),
        ("30 s", "30 s"),
        ([], "none"),
        ([3.0], "3"),
        ([1.0, 2.0, 4.0], "2 (1 to 4)"),
        ([1.0, None], "1, 1 unknown"),
        ([None, None], "?, ?"),
        (["a", "b"], "a, b"),
    ],
)
def test_values(value: object, text: str) -> None:
    assert shown(value) == text


def test_units_stay_behind_the_name() -> None:
    assert [words(name) for name in ("mean_ms", "items_per_s", "p99_ms")] == ["mean ms", "items/s", "p99 ms"]


def test_single_figures_are_listed() -> None:
    assert lines({"mean_ms": 1.5, "batch": "5 s"}) == [
        ["b"],
        ["figure", "value"],
        ["mean ms", "1.5"],
        ["batch", "5 s"],
    ]


def test_turns_of_several_become_a_table_with_a_row_for_each() -> None:
    turns = {
        "one_hop": [{"mean_ms": 1.0, "lost": 0}, {"mean_ms": 3.0, "lost": 0}],
        "three_hops": [{"mean_ms": 4.0, "lost": 0}, None],
    }
    assert lines({"turns": turns}) == [
        ["b: turns"],
        ["", "mean ms", "lost"],
        ["one hop", "2 (1 to 3)", "0"],
        ["three hops", "4", "0"],
    ]


def test_figures_that_have_parts_in_common_share_a_table_and_others_do_not() -> None:
    figures = {
        "20 ms": {"held": 0.9, "p95_ms": 30.0, "paper": {"held": 0.93}},
        "100 ms": {"held": 1.0, "p95_ms": 80.0, "paper": {"held": 0.91}},
        "unelastic": {"lowest_ms": 348},
    }
    assert lines(figures) == [
        ["b"],
        ["", "held", "p95 ms", "paper held"],
        ["20 ms", "0.9", "30", "0.93"],
        ["100 ms", "1", "80", "0.91"],
        ["b: unelastic"],
        ["figure", "value"],
        ["lowest ms", "348"],
    ]


def test_what_goes_deeper_has_tables_of_its_own_and_nothing_is_nested() -> None:
    figures = {"a": {"x": {"r": {"v": 1.0}, "s": {"v": 2.0}}}}
    assert lines(figures) == [["b: a: x"], ["", "v"], ["r", "1"], ["s", "2"]]


def test_too_many_columns_are_left_to_programs() -> None:
    wide = {f"c{number}": number for number in range(MOST_COLUMNS + 3)}
    shown_lines = lines({"one": wide, "two": wide})
    assert len(shown_lines[1]) == 1 + MOST_COLUMNS
    assert shown_lines[-1] == ["and 3 more with --json"]
