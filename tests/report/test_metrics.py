"""The papers' figures, by hand and as properties."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from penstock.report.history import History
from penstock.report.metrics import figures_of, held, needed, throughput
from penstock.stats.snapshot import Snapshot
from tests.report.recordings import decision, history, snapshot


def test_a_constraint_is_held_where_its_mean_is_within_the_bound() -> None:
    run = history(
        snapshot(wait_ms=6.0), snapshot(wait_ms=6.1), snapshot(wait_ms=None), snapshot(0, 0, wait_ms=None)
    )
    assert held(run, "c") == [True, False, False, None]
    kept = figures_of(run).kept["c"]
    assert kept.share_held == pytest.approx(1 / 3)
    assert kept.mean_ms == pytest.approx(10.05)
    assert kept.violated_s == 10
    assert kept.p95_ms is None


def test_a_bound_of_a_percentile_is_held_against_the_percentile() -> None:
    def bounded(p95_ms: float, statistic: str = "p95") -> Snapshot:
        one = snapshot(p95_ms=p95_ms)
        return replace(one, constraints=[replace(one.constraints[0], statistic=statistic)])

    run = history(bounded(9.0), bounded(11.0))
    assert held(run, "c") == [True, False]
    assert figures_of(run).kept["c"].p95_ms == 10.0
    assert held(history(bounded(9.0, "p99")), "c") == [None]


def test_an_interval_is_held_against_the_bound_it_had() -> None:
    slow = snapshot(wait_ms=26.0)
    wide = replace(slow, constraints=[replace(slow.constraints[0], latency_ms=40)])
    assert held(history(wide, slow), "c") == [True, False]


def test_task_hours_and_cpu() -> None:
    found = figures_of(history(snapshot(replicas=2), snapshot(replicas=4)))
    assert found.task_hours == {"work": pytest.approx(30 / 3600)}
    assert found.worker_cpu == 0.5
    assert found.cores_used == 1.0
    assert found.seconds == 10


def test_saved_nodes_compare_with_a_fixed_number_for_the_peak() -> None:
    """3,000 items/s of 1 ms each keep four replicas busy for three quarters of the time, whoever measures."""
    quiet, peak = snapshot(replicas=1, busy=0.3), snapshot(3000.0, replicas=5, busy=700.0)
    assert figures_of(history(quiet, peak)).saved_nodes == pytest.approx(1 - 3 / 4)
    inelastic = replace(quiet, tasks={**quiet.tasks, "work": replace(quiet.tasks["work"], elastic=False)})
    assert figures_of(history(inelastic)).saved_nodes is None


def test_replicas_that_the_load_of_an_interval_asks_for() -> None:
    assert needed(snapshot(replicas=1, busy=0.3).tasks["work"]) == 1
    assert needed(snapshot(replicas=5, busy=0.6).tasks["work"]) == 4


def test_throughput_and_processed_events() -> None:
    found = figures_of(history(snapshot(100, 500), snapshot(100, 250)))
    assert found.throughput_degradation == pytest.approx(0.25)
    assert found.processed_share == pytest.approx(0.75)


def test_a_task_that_makes_one_item_of_four_degrades_nothing() -> None:
    found = figures_of(history(snapshot(100, 500, emitted=125), snapshot(200, 1000, emitted=250)))
    assert found.throughput_degradation == pytest.approx(0)
    assert found.processed_share == pytest.approx(1)


def test_where_items_take_several_ways_nothing_is_claimed() -> None:
    forked = snapshot()
    more = [*forked.streams, replace(forked.streams[0], receiver="sink")]
    run = history(replace(forked, streams=more))
    assert throughput(run) is None
    assert figures_of(run).processed_share is None


def test_where_it_is_known_how_many_took_each_way_all_of_them_count() -> None:
    forked = snapshot(100, 500)
    work = replace(forked.tasks["work"], emitted_total=750.0)
    ways = [
        forked.streams[0],
        replace(forked.streams[1], emitted_total=500.0),
        replace(forked.streams[1], receiver="aside", emitted_total=250.0),
    ]
    aside = replace(forked.tasks["sink"], processed_total=250.0)
    run = history(replace(forked, streams=ways, tasks={**forked.tasks, "work": work, "aside": aside}))
    assert throughput(run) == [(150.0, 150.0)]


def test_changes_of_replicas_are_counted() -> None:
    run = history(snapshot(replicas=2), snapshot(replicas=3), decided=[decision(3), decision(3)])
    assert figures_of(run).changes == 1


@given(
    st.lists(
        st.tuples(st.floats(0, 1e5), st.floats(0, 5e5), st.none() | st.floats(0, 100), st.integers(1, 8)),
        min_size=1,
        max_size=10,
    )
)
def test_figures_stay_within_what_they_can_be(points: list[tuple[float, float, float | None, int]]) -> None:
    run = history(*(snapshot(rate, arrived, wait_ms=wait, replicas=n) for rate, arrived, wait, n in points))
    found = figures_of(run)
    share = found.kept["c"].share_held
    assert share is None or 0 <= share <= 1
    assert 0 <= found.kept["c"].violated_s <= found.seconds
    assert found.throughput_degradation is None or found.throughput_degradation >= 0
    assert found.saved_nodes is None or found.saved_nodes < 1


def test_changes_are_counted_by_number_where_a_killed_run_left_no_decision() -> None:
    """The second of three snapshots has none: the third decision is about the third snapshot."""
    run = history(
        snapshot(replicas=2),
        snapshot(replicas=3),
        snapshot(replicas=4),
        decided=[decision(2), decision(3), decision(4)],
    )
    kept = tuple(entry for entry in run.entries if entry.number != 1)
    assert figures_of(History("run", run.snapshots, kept)).changes == 0
