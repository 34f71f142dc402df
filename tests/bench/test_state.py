"""Benches `state` and `commit` without Spark: what they make of turns, and the tasks of their flows."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy
import pytest

from penstock.bench import (
    commit,
    commit_each_second,
    commit_files,
    keyed,
    state,
    state_count,
    state_flow,
    state_peers,
    state_recovery,
    state_rescale,
)
from penstock.bench.commit_each_second import Commits
from penstock.bench.harness import Check, Effort
from penstock.bench.peer_counts import SETTINGS
from penstock.bench.peer_spark import MICRO, OWN, OWN_BATCHED
from penstock.bench.peers import Measured
from penstock.bench.peers import Turn as PeerTurn
from penstock.bench.registry import find
from penstock.bench.state_count import Look
from penstock.bench.state_disk import StateFiles
from penstock.bench.state_recovery import EXECUTOR, WORKER, Came
from penstock.bench.state_rescale import BOUNDARY, MARK, RESTART, Change, Turn
from penstock.bench.windows import Window
from penstock.testing import run
from penstock.wire.keys import key_group, owner
from tests.testing.entries import entries

Section = tuple[dict[str, Any], list[Check]]
SECOND = 10**9


def failed(section: Section) -> list[str]:
    return [check.name for check in section[1] if not check.ok]


def counts(committed_s: float = 0.12, declared_s: float = 0.12, items: int = 310_000) -> Section:
    costs = {"committed": committed_s, "declared": declared_s, "attribute": 0.1}
    kept = {name: [Look(Window(1.0, 20_000, cpu_s), 300.0)] for name, cpu_s in costs.items()}
    offered = {name: [Look(Window(1.0, items, 2.0))] for name in costs}
    return state_count.summarise({"kept": kept, "offered": offered})


def test_a_count_is_held_against_one_in_an_attribute() -> None:
    assert failed(counts()) == []
    assert counts()[0]["committed"]["memory_bytes_per_key"] == [300.0]
    assert failed(counts(committed_s=0.14)) == ["CPU per item, declared, committed each second / attribute"]
    assert failed(counts(declared_s=0.14)) == ["CPU per item, declared, without commits / attribute"]
    assert len(failed(counts(items=290_000))) == 2


@pytest.mark.parametrize("contestant", state_count.CONTESTANTS)
def test_all_counts_of_the_bench_are_the_same(contestant: str) -> None:
    given = [keyed.made(0, index, 0) for index in (1, 2, 1, 1)]
    assert run(state_count.flow(contestant, 1.0), {"items": given})["drop"] == [1, 1, 2, 3]


def test_records_are_made_known_counted_and_as_long_as_told(tmp_path: Path) -> None:
    ledger = keyed.Sampled(str(tmp_path))
    flow = state_flow.flow(ledger, 10, tmp_path, 2, elastic=True)
    known = [keyed.filling(0, index, 0) for index in range(10)]
    items = [(0, index, 5, 0, None) for index in (3, 13, 4)]
    found = run(flow, {"fill": known, "items": items})["ledger"]
    key = keyed.one_of(10)
    assert key(items[0]) == key(items[1]) != key(items[2])
    assert [(index, due_ns) for _, index, due_ns, _, _ in found] == [(3, 5), (13, 5), (4, 5)]
    assert all(mark >= 0 for _, _, _, mark, _ in found)


def test_a_record_begins_with_its_count() -> None:
    sent: list[Any] = []
    task = keyed.Kept()
    out: Any = sent.append
    task.process((0, 1, 0, 0, None), out)
    task.process(keyed.filling(0, 1, 0), out)
    assert (keyed.counted(task.record), len(task.record), len(sent)) == (2, keyed.RECORD_BYTES, 1)


def of_files(bytes_of_100: int) -> Section:
    sizes = {0: 0, 100: bytes_of_100, 1_000: 50_000, 10_000: 500_000, keyed.KEYS: 5_000_000}
    found = [commit_files.Committed(changed, 0.01, size) for changed, size in sizes.items()]
    return commit_files.summarise(found)


def test_bytes_of_a_commit_follow_what_has_changed() -> None:
    assert failed(of_files(5_000)) == []
    assert failed(of_files(1_000)) == ["bytes, 10,000 / 100 changed"]


PLAIN = commit_each_second.Turn(30.0, 50.0, 70.0, 20.0, 5.0, 0, {"driver": 1.0, "java": 4.0, "workers": 15.0})
COMMITTED = replace(PLAIN, commits=Commits(9, (80.0,) * 9, 0, (10, 20), (100,), 90, 500))
SHORT = commit_each_second.Length(1, 1.0, 10.0)


@pytest.mark.parametrize(
    ("turn", "check"),
    [
        (replace(COMMITTED, p50_ms=33.1), "p50 ms, with / without commits"),
        (replace(COMMITTED, p99_ms=75.1), "p99 ms, with / without commits"),
        (replace(COMMITTED, cpu_us_per_item=22.1), "cpu us per item, with / without commits"),
        (replace(COMMITTED, commits=Commits(6)), "fewest commits of a turn"),
        (replace(COMMITTED, commits=Commits(9, voids=1)), "void epochs"),
        (replace(COMMITTED, missing=-1), "items lost or duplicated"),
        (replace(COMMITTED, lag_p99_ms=11.0), "valid run: worst source lag p99, ms"),
    ],
)
def test_a_commit_each_second_is_held_against_none(turn: commit_each_second.Turn, check: str) -> None:
    good = commit_each_second.summarise({"with": [COMMITTED], "without": [PLAIN]}, SHORT)
    assert failed(good) == []
    assert good[0]["commits"][0]["disk_bytes_per_commit"] == 10
    assert good[0]["with"]["workers_cpu_us"] == [15.0]
    bad = commit_each_second.summarise({"with": [turn], "without": [PLAIN]}, SHORT)
    assert failed(bad) == [check]


def test_a_turn_in_which_nothing_came_fails() -> None:
    assert "turns without items" in failed(
        commit_each_second.summarise({"with": [None], "without": [PLAIN]}, SHORT)
    )


def test_files_are_counted_once_and_not_before_they_are_whole(tmp_path: Path) -> None:
    place = tmp_path / "epochs" / "state"
    place.mkdir(parents=True)
    (place / "00000001-000000000002-00000-changes-count").write_bytes(b"12345")
    (place / "00000001-000000000001-00000-base-a-count").write_bytes(b"123")
    (place / ".new-1-1").write_bytes(b"1")
    files = StateFiles(tmp_path)
    files.look()
    (place / "00000001-000000000001-00000-base-a-count").unlink()
    files.look()
    assert (files.bytes, files.of("changes"), files.of("base"), files.whole_bytes()) == (8, [5], [3], 6)


RATE = 2000
PAUSE_S = 3.0


def rescaled(staying_ms: int = 30, moving_ms: int = 500, lost: int = 0, wrong: int = 0) -> Turn:
    """From 2 to 4 at 3 s and back at 6 s, each for 0.4 s; items are 30 ms under way otherwise."""
    changes = (
        Change("2_to_4", 3 * SECOND, 3 * SECOND + 4 * 10**8),
        Change("4_to_2", 6 * SECOND + 4 * 10**8, 6 * SECOND + 8 * 10**8),
    )
    rows = []
    for index in range(10 * RATE):
        due_ns = index * SECOND // RATE
        group = key_group(keyed.key_text(keyed.number_of(index, state_rescale.KEYS)))
        many = changes[0].begin_ns <= due_ns < changes[1].begin_ns
        mark = owner(group, 4 if many else 2)
        meanwhile = any(one.begin_ns <= due_ns < one.end_ns for one in changes)
        moves = owner(group, 2) != owner(group, 4)
        late_ms = (moving_ms if moves else staying_ms) if meanwhile else 30
        rows.append((0, index, due_ns, due_ns + late_ms * 10**6, mark))
    return Turn(0, changes, entries(rows), lost, 0, wrong, 400.0, 10**6)


def of_rescale(turn: Turn) -> Section:
    taken = {MARK: [turn], BOUNDARY: [rescaled(600, 600)], RESTART: [rescaled(2000, 2000)]}
    return state_rescale.summarise(taken, None, PAUSE_S)


def test_items_of_keys_that_stay_and_move_have_bars_of_their_own() -> None:
    section = of_rescale(rescaled())
    assert failed(section) == []
    seen = section[0][MARK]["2_to_4"]
    assert seen["steady_p99_ms"] == [pytest.approx(30)]
    assert seen["staying_more_p99_ms"] == [pytest.approx(0)]
    assert seen["moving_more_p99_ms"] == [pytest.approx(470)]
    assert seen["moving_worst_ms"] == [pytest.approx(500)]
    assert seen["late_s"] == [pytest.approx(0.4, abs=0.01)]
    assert section[0][RESTART]["4_to_2"]["staying_more_p99_ms"] == [pytest.approx(1970)]
    assert failed(of_rescale(rescaled(staying_ms=90))) == ["items of keys that stay, p99, ms more"]
    assert failed(of_rescale(rescaled(moving_ms=1040))) == ["items of keys that move, p99, ms more"]
    assert failed(of_rescale(rescaled(lost=1))) == ["rescale: items lost"]
    assert failed(of_rescale(rescaled(wrong=1))) == ["rescale: counted wrong"]


def test_a_change_that_nobody_saw_fails() -> None:
    turn = rescaled()
    unseen = replace(turn, entries=turn.entries.where(numpy.zeros(len(turn.entries), dtype=numpy.bool_)))
    assert len(failed(of_rescale(unseen))) == 2


def of_recovery(worker: Came, executor: Came) -> Section:
    return state_recovery.summarise({WORKER: [worker], EXECUTOR: [executor]})


BACK = Came(back_s=4.0, replayed_s=1.0, restarts=1)


def test_recovery_has_bars_for_a_worker_and_an_executor() -> None:
    assert failed(of_recovery(BACK, BACK)) == []
    late = Came(back_s=15.0, replayed_s=2.5, lost=1, counted_wrong=2)
    assert failed(of_recovery(late, late)) == [
        "bound back after a killed worker, s",
        "replayed after a killed worker, s",
        "items lost with a worker",
        "counted wrong after a killed worker",
        "replayed after a killed executor, s",
        "items lost with a executor",
        "counted wrong after a killed executor",
    ]
    never = Came(replayed_s=0.0)
    assert failed(of_recovery(never, BACK)) == ["bound back after a killed worker, s"]


def test_a_kill_that_could_not_be_tried_is_told_and_fails() -> None:
    section = of_recovery(BACK, Came(refused="workers do not reach the checkpoint"))
    assert section[0]["executor_refused"] == "workers do not reach the checkpoint"
    assert len(failed(section)) == 4


PEER = PeerTurn(1.0, 3.0, 200.0, 1000.0, 0.1, 0, 0, 0)


def beside(own: PeerTurn = PEER, *, left_out: str = "") -> Section:
    turns: dict[str, list[PeerTurn | None]] = {
        OWN: [own],
        MICRO: [replace(PEER, p50_ms=500.0)],
        "bytewax": [PEER],
    }
    highest: dict[str, list[float | None]] = {OWN_BATCHED: [300_000.0], MICRO: [3000.0], OWN: [30_000.0]}
    turns.pop(left_out, None)
    highest.pop(left_out, None)
    skipped = {left_out: "no network"} if left_out else {}
    return state_peers.summarise(Measured({state_peers.CASE.name: turns}, highest, skipped))


def test_a_count_beside_others_must_be_measured_and_whole() -> None:
    assert failed(beside()) == []
    assert failed(beside(replace(PEER, p50_ms=51.0))) == ["p50 of a count / micro-batches"]
    assert failed(beside(replace(PEER, lost=1))) == ["peers: items lost"]
    assert failed(beside(replace(PEER, items_per_s=890.0))) == ["valid run: lowest rate kept"]
    without = beside(left_out="bytewax")
    assert without[0]["bytewax_skipped"] == "no network"
    assert failed(without) == ["contestants that were measured"]
    assert set(SETTINGS) == {OWN, OWN_BATCHED, MICRO}


@pytest.mark.parametrize(("name", "bench"), [("state", state), ("commit", commit)])
def test_parts_can_be_run_alone(name: str, bench: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    for part in bench.EXPERIMENTS:
        section = ({"part": part}, [Check(part, 1.0, "==", 1.0)])
        monkeypatch.setitem(bench.EXPERIMENTS, part, lambda _, section=section: section)
    assert list(find(name)(Effort.QUICK).figures) == list(bench.EXPERIMENTS)
    last = list(bench.EXPERIMENTS)[-1]
    assert find(name, [last])(Effort.QUICK).figures == {last: {"part": last}}
