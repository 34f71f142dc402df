"""From turns to figures and checks, without Spark."""

import numpy
import pytest

from penstock.bench import (
    backlog,
    boundary,
    commits,
    cpu,
    idle,
    latency,
    overhead,
    switch,
    throughput,
)
from penstock.bench.baselines import Rows
from penstock.bench.harness import Result
from penstock.bench.latency_summary import LatencySummary, middle_mean_ms
from penstock.bench.windows import Window
from tests.testing.entries import entries


def verdicts(result: Result) -> dict[str, bool]:
    return {check.name: check.ok for check in result.checks}


def summary(mean_ms: float, lost: int = 0, lag_ms: float = 0.2, reordered: int = 0) -> LatencySummary | None:
    latency_ms, lags_ms = numpy.array([mean_ms, mean_ms]), numpy.array([lag_ms])
    return LatencySummary.of(latency_ms, lost=lost, duplicated=0, reordered=reordered, source_lag_ms=lags_ms)


def latency_turns(one: float, beside: float, lost: int = 0) -> dict[str, list[LatencySummary | None]]:
    return {
        "penstock_1_hop": [summary(one, lost)],
        "penstock_task_and_sink": [summary(beside)],
        "jvm_hop": [summary(0.3)],
        "penstock_3_hops": [summary(1.2)],
        "micro_batch": [summary(300)],
        "map_in_arrow": [summary(2500)],
    }


def test_latency_holds_both_readings_of_a_hop_against_the_bar() -> None:
    assert latency.summarise(latency_turns(0.5, 0.59)).ok
    assert verdicts(latency.summarise(latency_turns(0.5, 0.61)))["task and sink / JVM-only hop"] is False
    assert verdicts(latency.summarise(latency_turns(0.61, 0.5)))["one hop / JVM-only hop"] is False
    assert verdicts(latency.summarise(latency_turns(0.5, 0.5, lost=1)))["items lost"] is False
    turns = {**latency_turns(0.5, 0.5), "penstock_3_hops": [summary(1.2, reordered=1)]}
    assert [name for name, ok in verdicts(latency.summarise(turns)).items() if not ok] == ["items reordered"]


def test_latency_of_a_late_source_is_not_valid_whatever_the_ratios() -> None:
    turns = latency_turns(0.5, 0.5)
    turns["penstock_1_hop"].append(summary(0.5, lag_ms=17.0))
    result = latency.summarise(turns)
    assert not result.ok
    assert [name for name, ok in verdicts(result).items() if not ok] == [
        "valid run: worst source lag p99, ms"
    ]


def test_latency_not_measured_fails() -> None:
    turns = latency_turns(0.5, 0.5)
    turns["micro_batch"] = [None]
    assert verdicts(latency.summarise(turns))["one hop / micro-batch"] is False


def test_summaries_of_latency() -> None:
    assert LatencySummary.of(numpy.array([]), lost=0, duplicated=0) is None
    found = LatencySummary.of(numpy.arange(101.0), lost=1, duplicated=2, source_lag_ms=numpy.ones(3))
    assert found is not None
    assert (found.p50_ms, found.p95_ms, found.max_ms, found.source_lag_p99_ms) == (50, 95, 100, 1)
    assert middle_mean_ms([summary(1), None, summary(5), summary(2)]) == 2


def test_rows_of_the_baseline() -> None:
    rows = Rows(
        *(numpy.array(column) for column in ([0, 1, 3, 3], [0, 10**9, 3 * 10**9, 3 * 10**9], [0, 0, 0, 0]))
    )
    found = rows.after(0.5).summary()
    assert found is not None
    assert (found.items, found.lost, found.duplicated) == (3, 1, 1)


def windows(items: int, cpu_seconds: float = 1.0) -> list[Window]:
    return [Window(1.0, items, cpu_seconds)]


def test_throughput_needs_five_times_or_half_a_million() -> None:
    def ok(at_once: int, batched: int, lost: int = 0, lists: int = 10**6, awaited: int = 15_000) -> bool:
        turns = {
            "at_once": windows(at_once),
            "after_20_ms": windows(batched),
            "batches": windows(lists),
            "awaited": windows(awaited),
        }
        return throughput.summarise(turns, lost).ok

    assert ok(30_000, 150_000)
    assert not ok(30_000, 149_000)
    assert ok(200_000, 500_000)
    assert not ok(200_000, 499_000)
    assert not ok(30_000, 150_000, lost=1)
    assert ok(30_000, 600_000, lists=780_000)
    assert not ok(30_000, 600_000, lists=779_000)
    assert not ok(30_000, 150_000, awaited=14_900)


def test_cpu_needs_a_third_at_the_rate() -> None:
    def result(batched_s: float, items: int = 10_000) -> Result:
        batches = windows(10_000, 0.2)
        taken = {
            "at_once": windows(10_000, 1.5),
            "after_100_ms": windows(items, batched_s),
            "batches": batches,
            "awaited": windows(10_000, 0.4),
        }
        return cpu.summarise(taken)

    assert result(0.5).ok
    assert not result(0.51).ok
    assert not result(0.1, items=5_000).ok
    assert result(0.5).figures["batches_cpu_us_per_item"] == pytest.approx(20)
    assert result(0.5).figures["awaited_cpu_us_per_item"] == pytest.approx(40)


def test_idle_counts_processes_cores_and_memory() -> None:
    small = [idle.Turn(0.1, 1, 10.0)]
    assert idle.summarise(small, [idle.Turn(0.14, 1, 12.0)]).ok
    assert not idle.summarise(small, [idle.Turn(0.16, 1, 12.0)]).ok
    assert not idle.summarise(small, [idle.Turn(0.14, 2, 12.0)]).ok
    assert not idle.summarise(small, [idle.Turn(0.14, 1, 26.0)]).ok


def turn(number: int, *, workers_s: float, speed: float) -> overhead.Turn:
    """On fast cores everything takes less; the reference takes a second, what is shared two."""
    cpu = overhead.Cpu(workers_s / speed, 1.0 / speed, 2.0 / speed)
    return overhead.Turn(number % 4 in (1, 2), number * 10**9, (number + 1) * 10**9, cpu)


def test_overhead_compares_neighbours_whatever_the_speed_of_the_moment() -> None:
    """Each turn sees one item; the third pair sees none while measuring."""
    rows = [(0, n, n * 10**9, n * 10**9 + 10**6 * (5 if n in (1, 2) else 4), 0) for n in range(4)]
    rows += [(0, 9, 4 * 10**9, 4 * 10**9 + 10**6, 0)]
    turns = [turn(n, workers_s=1.04 if n in (1, 2) else 1.0, speed=1.0 + 0.3 * n) for n in range(6)]
    pairs = overhead.paired(turns, entries(rows))
    assert [pair.more_cpu for pair in pairs] == pytest.approx([0.02, 0.02])
    assert [pair.more_latency_ms for pair in pairs] == pytest.approx([1.0, 1.0])


def test_all_that_driver_and_jvm_do_more_counts_for_the_flow() -> None:
    off, on = overhead.Cpu(1.0, 1.0, 2.0), overhead.Cpu(1.0, 1.0, 2.06)
    assert overhead.Pair(off, on, 2.0, 2.0).more_cpu == pytest.approx(0.03)


def test_overhead_has_bars_for_cpu_and_latency() -> None:
    def ok(more_cpu: float, more_ms: float) -> bool:
        off, on = overhead.Cpu(1.0, 1.0, 0.0), overhead.Cpu(1.0 + more_cpu, 1.0, 0.0)
        pairs = [overhead.Pair(off, on, 2.0, 2.0 + more_ms)] * 5
        return overhead.summarise({"at_once": pairs, "batched": pairs}).ok

    assert ok(0.029, 0.19)
    assert not ok(0.031, 0.0)
    assert not ok(0.0, 0.21)
    assert not overhead.summarise({"at_once": [], "batched": []}).ok


def test_the_middle_half_is_what_lies_between_the_quartiles() -> None:
    assert overhead.middle_half([4.0, 1.0, 3.0, 2.0, 100.0, -9.0, 5.0, 0.0]) == [1.0, 4.0]
    assert overhead.middle_half([1.0, 2.0]) is None


def switched(up_ms: int, down_ms: int, silent: int | None = None) -> switch.Turn:
    """Item n goes through replica n mod 8 after the way up, through n mod 2 after the way down."""
    rows = [(0, 0, 0, 1, 0)]
    rows += [(0, 1 + n, 0, up_ms * 10**6, n) for n in range(8) if n != silent]
    rows += [(0, len(rows) + n, 0, (1000 + down_ms) * 10**6, 7 if n == 0 else 1) for n in range(3)]
    return switch.Turn(0, 1000 * 10**6, entries(rows), len(rows))


def test_switch_times_are_those_of_the_slowest() -> None:
    result = switch.summarise([switched(100, 20), switched(200, 30)])
    assert result.ok
    assert result.figures["turns_up_ms"] == [100, 200]
    assert result.figures["turns_down_ms"] == [20, 30]
    assert not switch.summarise([switched(251, 20)]).ok
    assert not switch.summarise([switched(100, 251)]).ok


def test_a_replica_that_never_woke_fails_the_switch() -> None:
    assert switched(100, 20, silent=5).up_ms() is None
    assert verdicts(switch.summarise([switched(100, 20, silent=5)]))["1 -> 8 takes effect, ms"] is False


def scaled(late_s: float, every: int = 1, first: int = 0) -> backlog.Turn:
    """100 items a second for 10 s; of those that arrive until then each so-manieth was late by 0.1 s."""
    times = [round(n * 1e7) for n in range(1000)]
    late_ns = [10**8 if at < late_s * 1e9 and n % every == first else 10**6 for n, at in enumerate(times)]
    rows = [(0, n, at - late, at, n % 4) for n, (at, late) in enumerate(zip(times, late_ns, strict=True))]
    return backlog.Turn(0, entries(rows), 1000)


def test_a_backlog_is_worked_off_when_no_window_has_a_share_of_late_items() -> None:
    assert scaled(0).worked_off_s() == 0
    assert scaled(2.1).worked_off_s() == 2.25
    assert scaled(2.1, every=4).worked_off_s() == 2.25, "those of one replica of four"
    assert scaled(2.1, every=20).worked_off_s() == 0, "such are there in any flow"
    assert scaled(10).worked_off_s() is None
    assert scaled(2.1, every=4).late_after() == pytest.approx(0.05, abs=0.005)


def test_who_balances_is_to_be_back_sooner() -> None:
    def balanced(late_s: float) -> dict[str, bool]:
        return verdicts(backlog.summarise({"plain": [scaled(4)], "balanced": [scaled(late_s)]}))

    assert all(balanced(2).values())
    assert [name for name, ok in balanced(4).items() if not ok] == ["worked off, balanced / plain turns"]
    assert not balanced(10)["worked off, balanced / plain turns"], "it never was"


def test_a_gap_is_the_longest_silence_in_a_span() -> None:
    arrived = numpy.array([0, 1, 50, 51, 300]) * 10**6
    assert boundary.gap_ms(arrived, 0, 100 * 10**6) == pytest.approx(49)
    assert boundary.gap_ms(arrived, 200 * 10**6, 10**9) is None


def test_boundary_has_figures_next_to_sparks_and_checks_losses() -> None:
    result = boundary.summarise({"plain": [400.0, None], "resized": [500.0], "spark": [200.0]}, 0, 0)
    assert result.ok
    assert result.figures["gap_over_sparks_own"] == 2.0
    assert not boundary.summarise({"plain": [], "resized": [], "spark": []}, 1, 0).ok


def commits_turn(late_ms: float, gaps_ms: tuple[float, ...], lost: int = 0) -> commits.Turn:
    """Ten seconds of 100 items a second; those of the third are that late, all others 5 ms."""
    rows = [
        (0, index, 10**7 * index, 10**7 * index + round(1e6 * (late_ms if 200 <= index < 300 else 5.0)), 0)
        for index in range(1000)
    ]
    return commits.Turn(entries(rows), 0, 10 * 10**9, gaps_ms, lost, 0)


def test_commits_are_held_against_the_same_without() -> None:
    turns = {"with": [commits_turn(40.0, (220.0,))], "without": [commits_turn(5.0, ())]}
    result = commits.summarise(turns, "30 s")
    assert result.ok
    with_commits, without = (result.figures[f"{name}_commits"] for name in turns)
    assert (with_commits["held_share_of_1_s"], with_commits["held_share_of_5_s"]) == (0.9, 1.0)
    assert (without["held_share_of_1_s"], without["mean_ms"]) == (1.0, pytest.approx(5.0))
    assert with_commits["gaps_ms"] == [220.0]
    assert with_commits["worst_ms"] == pytest.approx(40.0)


def test_commits_that_lose_or_never_come_fail() -> None:
    without = [commits_turn(5.0, ())]
    lossy = commits.summarise({"with": [commits_turn(5.0, (1.0,), lost=1)], "without": without}, "30 s")
    assert not verdicts(lossy)["items lost"]
    never = commits.summarise({"with": without, "without": without}, "30 s")
    assert not verdicts(never)["fewest gaps of a turn with commits"]
