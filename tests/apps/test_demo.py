"""What the demo counts and shows; and the demo itself, on Spark."""

import io
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.console import Console

from penstock.apps.demo import demo
from penstock.apps.demo_calibration import (
    FIRST_PER_S,
    NEEDED,
    STEP_S,
    WARM_UP_S,
    Rates,
    climb,
    highest_held,
)
from penstock.apps.demo_view import Outcome, changes, draw, live_view, second_line, summary_table
from penstock.apps.tally import NS_PER_S, Second, Tally
from penstock.control.decision_log import Entry
from penstock.policy.decision import Decision, Reason
from tests.testing.entries import entries

ZERO_S = 1000.0


def text_of(table: object) -> str:
    console = Console(file=io.StringIO(), width=140)
    console.print(table)
    assert isinstance(console.file, io.StringIO)
    return console.file.getvalue()


def second(number: int, mean_ms: float | None) -> Second:
    return Second(number, 2000, mean_ms, mean_ms, mean_ms)


def entry(number: int, testers: int, lifetime_ms: float) -> Entry:
    decision = Decision(
        policy="nephele",
        parallelism={"tester": testers},
        batch_lifetime_ms={"numbers->tester": lifetime_ms},
        chains=[],
        feasible=True,
        reasons=[
            Reason(rule="batching", why="time is left"),
            Reason(rule="queues", why="long", task="tester"),
        ],
    )
    return Entry(number=number, at_s=ZERO_S + number, decision=decision)


def outcome(*means_ms: float | None, decisions: tuple[Entry, ...] = ()) -> Outcome:
    return Outcome(
        bound_ms=20,
        capacity_per_s=4000,
        static=8,
        items=100,
        lost=1,
        duplicated=2,
        seconds=[second(number, mean_ms) for number, mean_ms in enumerate(means_ms)],
        replicas=[2] * len(means_ms),
        cores=[0.5] * len(means_ms),
        decisions=decisions,
        zero_s=ZERO_S,
    )


@given(st.lists(st.integers(0, 50), max_size=80), st.integers(0, 60))
def test_the_tally_counts_missing_and_duplicated(indexes: list[int], expected: int) -> None:
    tally = Tally()
    for part in (indexes[:20], indexes[20:]):
        tally.add(entries((0, n, 0, 0, 1) for n in part))
    assert tally.missing(expected) == len(set(range(expected)) - set(indexes))
    assert tally.duplicated() == len(indexes) - len(set(indexes))


def test_a_second_is_that_in_which_items_were_due_whenever_they_arrive() -> None:
    tally = Tally()
    assert tally.zero_ns is None
    tally.add(entries((0, n, n * NS_PER_S // 50, n * NS_PER_S // 50 + 10_000_000, 0) for n in range(75)))
    late = [(0, n, n * NS_PER_S // 50, n * NS_PER_S // 50 + 30_000_000, 0) for n in range(75, 100)]
    assert tally.second(1, 50).mean_ms == pytest.approx(10)
    tally.add(entries(late))
    assert tally.second(1, 50).mean_ms == pytest.approx(20)
    assert tally.second(1, 50).held(20) is True
    assert tally.second(1, 50).held(19) is False
    assert tally.second(2, 50).held(20) is None


def test_the_capacity_is_the_highest_rate_that_was_held() -> None:
    schedule = climb()
    rates = schedule.rates_per_s[1:]
    ends_s = WARM_UP_S + STEP_S * len(rates)

    def arrivals(held_until_s: float) -> list[tuple[int, int, int, int, int]]:
        times = [k / 10 for k in range(round(ends_s * 10))]
        late = [0.015 if at_s < held_until_s else 0.5 for at_s in times]
        return [
            (0, k, round(at_s * 1e9), round((at_s + late_s) * 1e9), 0)
            for k, (at_s, late_s) in enumerate(zip(times, late, strict=True))
        ]

    assert highest_held(entries(arrivals(ends_s)), schedule, 20.0) == rates[-1]
    assert highest_held(entries(arrivals(WARM_UP_S + 3 * STEP_S)), schedule, 20.0) == rates[2]
    assert highest_held(entries(arrivals(0.0)), schedule, 20.0) == FIRST_PER_S


@given(st.floats(100, 1e6))
def test_the_peak_takes_most_of_the_capacity_and_at_least_four_testers(capacity: float) -> None:
    rates = Rates(capacity)
    assert rates.high_per_s >= 0.6 * capacity
    assert 4 <= rates.high_per_s / rates.tester_per_s <= NEEDED
    assert rates.low_per_s < rates.high_per_s / 5


def test_changes_are_told_with_their_reason_and_small_ones_are_not() -> None:
    decisions = (entry(0, 2, 5.0), entry(1, 2, 5.5), entry(2, 4, 5.5), entry(3, 4, 9.0))
    scaled, batched = changes(outcome(5, 5, 5, 5, decisions=decisions))
    assert (scaled.at_s, scaled.what, scaled.why) == (2.0, "tester 2 → 4", "long")
    assert (batched.what, batched.why) == ("numbers->tester batched 5.0 → 9.0 ms", "time is left")


def test_tables_show_the_constraint_and_the_counts() -> None:
    decisions = (entry(0, 2, 5.0), entry(1, 3, 5.0))
    shown = text_of(live_view(outcome(5, 30, None, decisions=decisions), overdue=3))
    assert "held" in shown
    assert "missed" in shown
    assert "overdue items: 3   duplicated items: 2" in shown
    assert "tester 2 → 3: long" in shown
    summary = text_of(summary_table(outcome(5, 30, None)))
    assert "50.0%" in summary
    assert "25.0%" in summary, "two of eight testers"
    assert "2,000 items/s, 50% of the capacity" in summary
    assert outcome().share_held() is None
    assert "-" in text_of(summary_table(outcome()))


def test_lines_tell_every_change_once() -> None:
    console = Console(file=io.StringIO(), width=200)
    first = outcome(5, decisions=(entry(0, 2, 5.0), entry(1, 3, 5.0)))
    told = second_line(first, 0, console)
    second_line(outcome(5, 30, decisions=(*first.decisions, entry(2, 4, 5.0))), told, console)
    assert isinstance(console.file, io.StringIO)
    written = console.file.getvalue()
    assert written.count("tester 2 → 3") == written.count("tester 3 → 4") == 1
    assert "5.0 ms" in written
    assert "missed" in written


def test_the_picture_is_written(tmp_path: Path) -> None:
    path = tmp_path / "new" / "p.png"
    assert draw(outcome(5, 30, None), path)
    assert path.read_bytes().startswith(b"\x89PNG")


@pytest.mark.spark
def test_the_demo_runs_on_spark_under_its_policy_and_loses_nothing(tmp_path: Path) -> None:
    console = Console(file=io.StringIO(), width=120)
    found = demo(14, tmp_path / "demo.png", console, Rates(2_000.0), dashboard=0)
    assert found.items > 5_000
    assert (found.lost, found.duplicated) == (0, 0)
    assert max(found.replicas) > 2, "more testers than at the start"
    assert (tmp_path / "demo.png").exists()
    assert isinstance(console.file, io.StringIO)
    shown = console.file.getvalue()
    assert f"picture: {tmp_path / 'demo.png'}" in shown
    assert "tester 2 → " in shown, "with its reason"
    assert "dashboard at http://127.0.0.1:" in shown
