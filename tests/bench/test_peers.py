"""Bench `peers` without peers: what it makes of turns, and contestants that the test plays."""

import json
import sys
from dataclasses import replace
from pathlib import Path

import numpy
import pytest

from penstock.bench import peer_environments, peers
from penstock.bench.baselines import Rows
from penstock.bench.harness import Effort
from penstock.bench.own_session import OwnSession
from penstock.bench.peer_environments import LIBRARIES, Library, PeerMissingError, python_of
from penstock.bench.peer_programs.items import Arrivals, Asked, Paced, asked, said
from penstock.bench.peer_spark import MICRO, OWN, OWN_BATCHED, recorded
from penstock.bench.peers import Case, Contestant, Length, Measured, Spent, Turn, contest, summarise, turn
from penstock.testing import Ledger
from penstock.testing.arrivals import Entries, arrivals

TURN = Turn(
    p50_ms=0.2,
    p99_ms=0.6,
    cpu_us=200.0,
    items_per_s=1000.0,
    lag_p99_ms=0.1,
    lost=0,
    duplicated=0,
    reordered=0,
)
ONE = Length(0.2, 0.3, 1, first_s=0.1, cases=(Case(1, 200.0),))
PLAYED = """
import os, sys, time
from peer_programs.items import Arrivals, Paced, turns
for turn in turns():
    if sys.argv[1:] == ["fails"]:
        sys.exit("it has no licence")
    items, arrivals = Paced(turn), Arrivals(turn.directory)
    while not items.is_over:
        for item in items.due(10):
            arrivals.write(item)
        time.sleep(0.001)
    arrivals.close()
"""


def measured(**changed: object) -> Measured:
    case = Case(1, 1000.0)
    return Measured({case.name: {OWN: [replace(TURN, **changed)], "bytewax": [TURN]}})  # type: ignore[arg-type]


def failed(found: Measured) -> list[str]:
    length = replace(ONE, cases=(Case(1, 1000.0),))
    return [check.name for check in summarise(found, length).checks if not check.ok]


def test_bars_are_kept_by_an_equal() -> None:
    assert failed(measured()) == []


@pytest.mark.parametrize(
    ("changed", "check"),
    [
        ({"p50_ms": 0.21}, "p50 ms, 1 hops at 1,000/s / Bytewax"),
        ({"p99_ms": 0.91}, "p99 ms, 1 hops at 1,000/s / Bytewax"),
        ({"cpu_us": 231.0}, "cpu us, 1 hops at 1,000/s / Bytewax"),
        ({"cpu_us": None}, "cpu us, 1 hops at 1,000/s / Bytewax"),
        ({"lag_p99_ms": 2.1}, "valid run: worst source lag p99, ms"),
        ({"items_per_s": 890.0}, "valid run: lowest share of a rate kept"),
        ({"lost": 1}, "items lost"),
        ({"duplicated": 1}, "items duplicated"),
        ({"reordered": 1}, "items reordered"),
    ],
)
def test_a_bar_that_is_missed_fails_alone(changed: dict[str, object], check: str) -> None:
    assert failed(measured(**changed)) == [check]


def test_who_was_skipped_is_told_and_fails_its_checks() -> None:
    found = measured()
    del found.turns["1_hops_at_1000_items_per_s"]["bytewax"]
    found.skipped["bytewax"] = "cannot be installed: no network"
    result = summarise(found, replace(ONE, cases=(Case(1, 1000.0),)))
    assert result.figures["bytewax_skipped"] == "cannot be installed: no network"
    assert [check.ok for check in result.checks] == [False] * 3 + [True] * 5


def test_a_turn_whose_source_was_late_is_repeated_and_shown() -> None:
    late = ([0, 200, 300], [1, 201, 301])
    marks = iter([5, 5, 1, 5, 5, 5])

    def ask(_name: str, _asked: Asked) -> tuple[Entries, Spent | None]:
        came = entries(*late)
        return replace(came, mark=came.mark + next(marks) * 1_000_000), None

    found, case = Measured(), ONE.cases[0]
    for _ in range(2):
        found.take_turn(case, "bytewax", ask, ONE)
    lags = [one.lag_p99_ms for one in found.turns[case.name]["bytewax"] if one is not None]
    assert lags == [1.0, 5.0]
    result = summarise(found, ONE)
    assert len(result.figures["repeated_since_not_valid"][case.name]["bytewax"]) == 4
    assert "valid run: worst source lag p99, ms" in [check.name for check in result.checks if not check.ok]


def test_what_was_lost_in_a_repeated_turn_counts() -> None:
    found = measured()
    found.repeated = {"1_hops_at_1000_items_per_s": {OWN: [replace(TURN, lost=3)]}}
    assert failed(found) == ["items lost"]


def entries(due_ms: list[int], arrived_ms: list[int], index: list[int] | None = None) -> Entries:
    zeros = numpy.zeros(len(due_ms), numpy.int64)
    numbers = numpy.array(range(len(due_ms)) if index is None else index)
    due, arrived = (numpy.array(times, numpy.int64) * 1_000_000 for times in (due_ms, arrived_ms))
    return Entries(zeros, numbers, due, arrived, zeros)


def test_a_turn_counts_after_the_warm_up_and_cpu_by_what_arrived_meanwhile() -> None:
    came = entries([0, 300, 200, 400], [100, 301, 700, 403], [0, 2, 1, 2])
    found = turn(came, Spent(300_000_000, 500_000_000, 0.004), 4, ONE)
    assert found == Turn(2.0, pytest.approx(2.98), 2000.0, 10.0, 0.0, lost=1, duplicated=1, reordered=1)  # type: ignore[arg-type]
    unseen = turn(came, None, None, ONE)
    assert unseen is not None
    assert unseen.cpu_us is None
    assert turn(entries([0], [100]), None, 1, ONE) is None


def test_the_highest_rate_is_of_what_arrived_in_the_look() -> None:
    assert peers.highest_per_s(entries([0] * 5, [0, 250, 300, 400, 600]), ONE) == pytest.approx(10)
    assert peers.highest_per_s(entries([], []), ONE) is None


def test_what_a_program_writes_a_ledger_reads(tmp_path: Path) -> None:
    written = Arrivals(str(tmp_path), 3)
    sent = [item for items in [Paced(Asked(1, 1e6, 1, "")).due(5)] for item in items]
    for item in sent:
        written.write(item)
    written.close()
    found = arrivals(Ledger(str(tmp_path)))
    assert found.index.tolist() == [item[1] for item in sent]
    assert found.due_ns.tolist() == [item[2] for item in sent]
    assert (found.arrived_ns > found.due_ns).all()
    rows = Rows(found.index, found.due_ns, found.arrived_ns)
    (tmp_path / "replica-00003").write_bytes(recorded(rows))
    assert arrivals(Ledger(str(tmp_path))).arrived_ns.tolist() == found.arrived_ns.tolist()


def test_a_paced_source_ends_with_its_items_or_its_time() -> None:
    few = Paced(Asked(1, 1000.0, 0.01, ""))
    assert [item[1] for item in few.one_by_one()] == list(range(10))
    many = Paced(Asked(1, 5e6, 0.01, "", flat_out=True))
    assert 0 < len(list(many.one_by_one())) < 50_000


def test_a_question_is_understood() -> None:
    question = Asked(2, 3000.0, 7.0, "/tmp/x", flat_out=True)
    assert asked(said(question)) == question
    assert json.loads(said(question))["hops"] == 2


def test_contestants_take_turns_and_one_that_fails_is_told(tmp_path: Path) -> None:
    _, environment = peers.peers_environment(tmp_path)
    program = tmp_path / "programs" / "played.py"
    program.write_text(PLAYED)
    found = Measured()
    command = [sys.executable, str(program)]
    with (
        OwnSession(command, environment=environment, directory=tmp_path) as good,
        OwnSession([*command, "fails"], environment=environment, directory=tmp_path) as bad,
    ):
        scratch = tmp_path / "scratch"
        scratch.mkdir()
        contest({OWN: Contestant(good, scratch), "pathway": Contestant(bad, scratch)}, ONE, found)
    assert found.skipped == {"pathway": "it has no licence"}
    (only,) = found.turns["1_hops_at_200_items_per_s"][OWN]
    assert only is not None
    assert (only.lost, only.duplicated) == (0, 0)
    assert only.p50_ms < 100
    assert only.cpu_us is not None
    assert found.highest[OWN][0] is not None
    assert list(scratch.iterdir()) == []


class Counted(Contestant):
    """Nothing ever arrives; how often it was asked."""

    def __init__(self, place: Path) -> None:
        self.place, self.asked = place, 0

    def take(self, asked: Asked, length: Length) -> tuple[Entries, Spent | None]:
        self.asked += 1
        return arrivals(Ledger(str(self.place))), None


def test_whom_no_bar_speaks_of_has_one_turn(tmp_path: Path) -> None:
    contestants = {name: Counted(tmp_path) for name in (OWN, "bytewax", "pathway")}
    contest(contestants, replace(ONE, turns=3), Measured())
    case_and_highest, first = 2, 1
    assert {name: one.asked for name, one in contestants.items()} == {
        OWN: first + 3 * case_and_highest,
        "bytewax": first + 3 * case_and_highest,
        "pathway": first + case_and_highest,
    }


def test_a_library_that_cannot_be_installed_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    python = tmp_path / "python"
    python.write_text("#!/bin/sh\necho first >&2; echo no network >&2; exit 3\n")
    python.chmod(0o700)
    with monkeypatch.context() as patched:
        patched.setattr(sys, "executable", str(python))
        with pytest.raises(PeerMissingError, match=r"^no network$"):
            python_of(LIBRARIES["bytewax"], tmp_path / "home")

    def cannot(library: Library) -> Path:
        raise PeerMissingError("no network")

    monkeypatch.setattr(peers, "python_of", cannot)
    skipped: dict[str, str] = {}
    assert list(peers.chosen((), skipped)) == [OWN, OWN_BATCHED, MICRO]
    assert skipped == dict.fromkeys(LIBRARIES, "cannot be installed: no network")
    assert list(peers.chosen(["bytewax"], {})) == [OWN, OWN_BATCHED]


def test_an_environment_is_made_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    ran: list[list[str]] = []

    def run(command: list[str]) -> None:
        ran.append(command)
        if "venv" in command:
            Path(command[-1]).mkdir()

    monkeypatch.setattr(peer_environments, "_run", run)
    home = python_of(LIBRARIES["bytewax"], tmp_path)
    assert python_of(LIBRARIES["bytewax"], tmp_path) == home == tmp_path / "bytewax0.21.1" / "bin" / "python"
    assert [command[-1] for command in ran] == [str(tmp_path / "bytewax0.21.1"), "bytewax==0.21.1"]


def test_every_library_has_a_program() -> None:
    programs = Path(peer_environments.__file__).parent / "peer_programs"
    assert all((programs / f"{library.program}.py").exists() for library in LIBRARIES.values())
    assert {case.rate_per_s for case in peers.LENGTHS[Effort.FULL].cases} == {1000.0, 3000.0}
