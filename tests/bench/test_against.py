"""Two checkouts in turn, with contestants and a machine that are played by the test."""

import json
import os
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.bench.against import AGAINST, REPEATS, THIS, Contest, Place, Turn, comparable, order
from penstock.bench.checkout import Ran, Report, ReportedCheck
from penstock.bench.harness import Result
from penstock.bench.registry import UnknownBenchError

KEPT = ReportedCheck("items lost", 0.0, "==", ok=True)


@dataclass
class Steps:
    """A reference loop whose readings are given, and quiet after them; and what a contest reported."""

    readings: list[float] = field(default_factory=list)
    slept_s: list[float] = field(default_factory=list)
    begun: list[Place] = field(default_factory=list)
    turns: list[Turn] = field(default_factory=list)
    waited: list[float] = field(default_factory=list)
    warmed: list[str] = field(default_factory=list)
    now_s: float = 0.0

    def slower(self) -> float:
        return self.readings.pop(0) if self.readings else 0.0

    def warms_up(self, bench: str, contestant: str) -> None:
        self.warmed.append(contestant)

    def begins(self, place: Place) -> None:
        self.begun.append(place)

    def waits(self, slower: float) -> None:
        self.waited.append(slower)

    def ended(self, place: Place, turn: Turn) -> None:
        self.turns.append(turn)

    def clock(self) -> float:
        return self.now_s


def switched(up_ms: float | None, check: ReportedCheck = KEPT) -> Report:
    return Report({"turns_up_ms": [up_ms], "turns_down_ms": [1.0]}, [check])


def contest(
    steps: Steps, this: Iterable[Ran | Report], against: Iterable[Ran | Report], *, turns: int = 3
) -> Contest:
    ready = {THIS: iter(this), AGAINST: iter(against)}
    cold = {THIS, AGAINST}

    def play(name: str) -> Ran:
        if name in cold:
            cold.remove(name)
            return Ran(switched(1e9))
        steps.now_s += 30
        ran = next(ready[name])
        return ran if isinstance(ran, Ran) else Ran(ran)

    runs = {THIS: lambda bench: play(THIS), AGAINST: lambda bench: play(AGAINST)}
    return Contest(
        runs, Path("/other"), steps, steps, turns=turns, sleep=steps.slept_s.append, clock=steps.clock
    )


def compared(this: list[float | None], against: list[float | None]) -> Result:
    turns = len(this)
    return contest(Steps(), map(switched, this), map(switched, against), turns=turns).run("switch")


def test_the_first_turn_of_each_does_not_count() -> None:
    steps = Steps()
    result = contest(steps, [switched(2.0)], [switched(4.0)], turns=1).run("switch")
    assert steps.warmed == [THIS, AGAINST]
    assert len(steps.turns) == 2
    assert result.figures["up_ms"]["ratio"] == 0.5


def test_contestants_alternate() -> None:
    assert "".join(name[0] for name in order(4)) == "taattaat"


@given(st.integers(1, 50))
def test_all_have_the_same_number_of_turns_and_none_three_in_a_row(turns: int) -> None:
    names = list(order(turns))
    assert names.count(THIS) == names.count(AGAINST) == turns
    assert all(len(set(names[begin : begin + 3])) == 2 for begin in range(len(names) - 2))


def test_medians_are_compared_and_every_turn_is_shown() -> None:
    result = compared([100.0, 500.0, 104.0], [100.0, 1.0, 101.0])
    assert result.figures["up_ms"] == {
        "this": 104.0,
        "against": 100.0,
        "ratio": 1.04,
        "turns_this": [100.0, 500.0, 104.0],
        "turns_against": [100.0, 1.0, 101.0],
    }
    assert result.bench == "switch against"
    assert result.figures["against"] == "/other"
    assert result.ok
    assert json.loads(result.to_json())["checks"][0] == {
        "name": "up_ms, this / against",
        "value": 1.04,
        "op": "<=",
        "bar": 1.05,
        "ok": True,
    }


@pytest.mark.parametrize(("this", "ok"), [(50.0, True), (105.0, True), (106.0, False)])
def test_lower_is_better_for_a_time(this: float, ok: bool) -> None:
    assert compared([this], [100.0]).ok is ok


@pytest.mark.parametrize(("this", "ok"), [(200.0, True), (95.0, True), (94.0, False)])
def test_higher_is_better_for_a_rate(this: float, ok: bool) -> None:
    def report(rate: float) -> Report:
        return Report({"at_once_items_per_s": rate, "after_20_ms_items_per_s": 7.0}, [KEPT])

    assert contest(Steps(), [report(this)], [report(100.0)], turns=1).run("throughput").ok is ok


def test_what_a_few_slow_items_decide_has_no_bar() -> None:
    names = ("penstock_1_hop", "penstock_3_hops", "penstock_task_and_sink")

    def report(p99_ms: float) -> Report:
        turn = {"p50_ms": 1.0, "mean_ms": 2.0, "p99_ms": p99_ms}
        return Report({"turns": {name: [turn] for name in names}}, [KEPT])

    result = contest(Steps(), [report(9.0)], [report(3.0)], turns=1).run("latency")
    assert result.figures["three_hops_p99_ms"]["ratio"] == 3.0
    assert result.ok
    assert [check.name for check in result.checks][:3] == [
        f"{name}_p50_ms, this / against" for name in ("one_hop", "three_hops", "task_and_sink")
    ]


def test_a_figure_that_a_turn_could_not_measure_is_null_and_fails() -> None:
    result = compared([100.0, None], [100.0, 100.0])
    assert result.figures["up_ms"]["this"] is None
    assert not result.ok


def test_a_figure_that_the_other_version_does_not_have_is_null_and_fails() -> None:
    result = contest(Steps(), [switched(1.0)], [Report({}, [])], turns=1).run("switch")
    assert result.figures["up_ms"]["turns_against"] == [None]
    assert not result.ok


def test_what_goes_wrong_with_items_here_fails_and_there_does_not() -> None:
    lost = switched(1.0, ReportedCheck("items lost", 2.0, "==", ok=False))
    here = contest(Steps(), [lost], [switched(1.0)], turns=1).run("switch")
    there = contest(Steps(), [switched(1.0)], [lost], turns=1).run("switch")
    assert (here.ok, there.ok) == (False, True)
    assert here.figures["bars_missed"] == {"this": ["items lost"], "against": []}
    assert there.figures["bars_missed"] == {"this": [], "against": ["items lost"]}


def busy(up_ms: float, **cores: Any) -> Ran:
    return Ran(switched(up_ms), **cores)


@pytest.mark.parametrize(
    "disturbed",
    [
        {"neighbours_cores": 0.5 * (os.cpu_count() or 1)},
        {"stolen_cores": 0.5 * (os.cpu_count() or 1)},
    ],
)
def test_a_turn_beside_others_is_repeated(disturbed: dict[str, float]) -> None:
    steps = Steps()
    result = contest(steps, [busy(900.0, **disturbed), busy(100.0)], [busy(100.0)], turns=1).run("switch")
    assert result.figures["up_ms"]["turns_this"] == [100.0]
    assert result.figures["turns_repeated"] == 1
    assert result.figures["disturbed_turns_that_count"] == []
    assert [(place.contestant, place.attempt) for place in steps.begun] == [
        (THIS, 1),
        (THIS, 2),
        (AGAINST, 1),
    ]


def test_a_turn_after_which_the_machine_is_slow_is_repeated_once_it_is_quiet() -> None:
    steps = Steps(readings=[0.0, 0.3, 0.2, 0.05])
    result = contest(steps, [busy(900.0), busy(100.0)], [busy(100.0)], turns=1).run("switch")
    assert result.figures["up_ms"]["this"] == 100.0
    assert steps.turns[0].conditions.disturbances == ["the reference loop was 30% slower after it"]
    assert steps.waited == [0.2]
    assert len(steps.slept_s) == 1


def test_a_machine_that_is_never_quiet_is_said_in_the_result() -> None:
    steps = Steps(readings=[0.5] * 1000)
    runs = [busy(float(number)) for number in range(1, REPEATS + 2)]
    result = contest(steps, runs, runs, turns=1).run("switch")
    assert len(steps.turns) == 2 * (REPEATS + 1)
    assert result.figures["up_ms"]["turns_this"] == [REPEATS + 1]
    assert result.figures["turns_repeated"] == 2 * REPEATS
    assert result.figures["disturbed_turns_that_count"] == [
        f"{name}: the reference loop was 50% slower before it; the reference loop was 50% slower after it"
        for name in (THIS, AGAINST)
    ]


def test_the_time_left_is_that_of_the_turns_to_come() -> None:
    steps = Steps()
    contest(steps, [switched(1.0)] * 2, [switched(1.0)] * 2, turns=2).run("switch")
    assert [place.left_s for place in steps.begun][1:] == [90, 60, 30]
    assert [(place.number, place.of) for place in steps.begun] == [(1, 4), (2, 4), (3, 4), (4, 4)]


def test_benches_that_cannot_be_compared_are_refused_with_those_that_can() -> None:
    assert comparable([]) == ["latency", "throughput", "cpu", "switch"]
    assert comparable(["cpu", "latency"]) == ["cpu", "latency"]
    with pytest.raises(UnknownBenchError) as refused:
        comparable(["cpu", "idle"])
    assert str(refused.value) == (
        "bench 'idle' cannot be compared with another checkout; "
        "those that can be are latency, throughput, cpu, switch"
    )
    with pytest.raises(UnknownBenchError, match=r"bench 'speed' does not exist; those that can be"):
        comparable(["speed"])
