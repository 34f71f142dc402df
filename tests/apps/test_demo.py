"""What the demo counts and shows; and the demo itself, on Spark."""

import io
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.console import Console

from penstock.apps.demo import MOST_TESTERS, demo, testers_for
from penstock.apps.demo_view import Outcome, draw, live_table, summary_table
from penstock.apps.tally import GROWTH, Interval, Tally, interval
from tests.testing.entries import entries


def text_of(table: object) -> str:
    console = Console(file=io.StringIO(), width=140)
    console.print(table)
    assert isinstance(console.file, io.StringIO)
    return console.file.getvalue()


def second(mean_ms: float | None) -> Interval:
    return Interval(1, 2000, 1990, mean_ms, mean_ms, mean_ms, replicas=2)


@given(st.lists(st.integers(0, 50), max_size=80), st.integers(0, 60))
def test_the_tally_counts_missing_and_duplicated(indexes: list[int], expected: int) -> None:
    tally = Tally()
    for part in (indexes[:20], indexes[20:]):
        tally.add(entries((0, n, 0, 0, 1) for n in part))
    assert tally.arrived == tally.primes == len(indexes)
    assert tally.missing(expected) == len(set(range(expected)) - set(indexes))
    assert tally.duplicated() == len(indexes) - len(set(indexes))


def test_the_tally_grows() -> None:
    tally = Tally()
    tally.add(entries([(0, 3 * GROWTH, 0, 0, 0)]))
    assert tally.missing(3 * GROWTH + 1) == 3 * GROWTH
    assert tally.missing(5 * GROWTH) == 5 * GROWTH - 1


def test_an_interval_sums_up_what_arrived() -> None:
    some = entries((0, n, 0, (n + 1) * 1_000_000, 0) for n in range(100))
    found = interval(some, time_s=3, span_s=2, offered_per_s=60, replicas=1)
    assert found.mean_ms == pytest.approx(50.5)
    assert found.arrived_per_s == 50
    assert found.held(51) is True
    assert found.held(50) is False
    nothing = interval(entries([]), time_s=3, span_s=1, offered_per_s=60, replicas=1)
    assert nothing.mean_ms is None
    assert nothing.held(20) is None


def test_tables_show_the_constraint_and_the_counts() -> None:
    shown = text_of(live_table([second(5), second(30), second(None)], 20, missing=3, duplicated=4))
    assert "held" in shown
    assert "missed" in shown
    assert "overdue items: 3   duplicated items: 4" in shown
    outcome = Outcome(100, 99, 5, 1, 0, 20, [second(5), second(30), second(None)])
    assert outcome.share_held() == 0.5
    summary = text_of(summary_table(outcome))
    assert "50.0%" in summary
    assert "lost" in summary
    assert Outcome(0, 0, 0, 0, 0, 20, []).share_held() is None


def test_the_picture_is_written(tmp_path: Path) -> None:
    path = tmp_path / "new" / "p.png"
    assert draw(Outcome(1, 1, 0, 0, 0, 20, [second(5), second(None)]), path)
    assert path.read_bytes().startswith(b"\x89PNG")


@given(st.floats(0, 1e6))
def test_testers_stay_in_the_pool(rate: float) -> None:
    assert 1 <= testers_for(rate) <= MOST_TESTERS


@pytest.mark.spark
def test_the_demo_runs_on_spark_and_loses_nothing(tmp_path: Path) -> None:
    console = Console(file=io.StringIO(), width=120)
    outcome = demo(6, tmp_path / "demo.png", console)
    assert outcome.items == outcome.arrived > 10_000
    assert (outcome.lost, outcome.duplicated) == (0, 0)
    assert outcome.primes > 0
    assert (tmp_path / "demo.png").exists()
    assert isinstance(console.file, io.StringIO)
    assert f"picture: {tmp_path / 'demo.png'}" in console.file.getvalue()
