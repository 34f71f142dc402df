"""From controlled runs to figures and checks, without Spark."""

from typing import Any

import msgspec
import pytest

from penstock.apps.primetest import NUMBER_BYTES, number
from penstock.bench import (
    control,
    control_batching,
    control_chaining,
    control_primetest,
    control_reaction,
    control_simulator,
    control_wordcount,
)
from penstock.bench.control_primetest import Contest
from penstock.bench.control_run import NS_PER_S
from penstock.bench.control_settings import INTERVAL_S, POLICIES, control_plan
from penstock.bench.harness import Check, Effort
from penstock.bench.windows import CpuSpan
from penstock.control.loop import Cycle
from penstock.stats.snapshot import Snapshot, decode_snapshot
from tests.bench.controlled import BEGAN_AT_S, BEGAN_NS, controlled, decision, snapshot
from tests.policy.snapshots import pipeline

SHORT = Contest("rate_limited", 300.0, 3_000.0, most=16, first=2, seconds=20.0)


def verdicts(checks: list[Check]) -> dict[str, bool]:
    return {check.name.partition(": ")[2]: check.ok for check in checks}


def contest(held_ms: float, testers: int, missing: int = 0) -> dict[str, bool]:
    """A profile of 20 s after the warm-up, of which nephele spends 5 s at `held_ms`."""
    seconds = control_primetest.WARM_UP_S + SHORT.seconds
    cycles = round(seconds / INTERVAL_S)

    def latency_ms(at_s: float) -> float:
        return held_ms if at_s >= seconds - 5 else 10.0

    runs = {
        "nephele": controlled(seconds, latency_ms, [testers] * cycles, missing=missing),
        "static": controlled(seconds, lambda _: 10.0, [16] * cycles, policy="static"),
    }
    return verdicts(control_primetest.summarise(SHORT, runs)[1])


def test_primetest_holds_nephele_against_static() -> None:
    assert all(contest(19.0, testers=12).values())
    assert contest(21.0, testers=12)["intervals that nephele held"] is False
    assert contest(19.0, testers=13)["replica-seconds, nephele / static"] is False
    assert contest(19.0, testers=12, missing=3)["items lost or duplicated"] is False


def test_the_warm_up_does_not_count() -> None:
    seconds = control_primetest.WARM_UP_S + SHORT.seconds
    one = controlled(
        seconds, lambda at_s: 500.0 if at_s < control_primetest.WARM_UP_S else 5.0, [16] * 10 + [4] * 10
    )
    figures = control_primetest.outcome(SHORT, one)
    assert figures["share_held"] == 1.0
    assert figures["replica_seconds"] == pytest.approx(4 * SHORT.seconds)
    assert figures["mean_ms"] == pytest.approx(5.0)
    assert figures["actions"] == 1


def test_the_profile_follows_the_warm_up() -> None:
    schedule = control_primetest.RATE_LIMITED.schedule
    assert schedule.rate_at(0) == schedule.rate_at(control_primetest.WARM_UP_S + 1) == 300.0
    assert max(schedule.rates_per_s) == control_primetest.RATE_LIMITED.peak.rate_at(1) == 3_000.0
    assert sum(schedule.spans_s) == pytest.approx(control_primetest.WARM_UP_S + 210.0)


def test_the_rates_of_testers_that_compute_come_from_the_time_of_a_test() -> None:
    chosen = control_primetest.cpu_bound(test_s=0.85 / 2_500)
    assert (chosen.low_per_s, chosen.high_per_s) == pytest.approx((250.0, 2_500.0))
    assert (
        control_primetest.outcome(chosen, controlled(230.0, lambda _: 5.0, [1] * 115))["peak_per_s"]
        == 2_500.0
    )
    small, large = (number(0, 1, 2, 3, size) for size in (NUMBER_BYTES, chosen.number_bytes))
    assert (len(small[-1]), len(large[-1])) == (32, 64)
    assert 0 < control_primetest.time_of_a_test() < 1


def reaction(broken_s: float, effect_ms: float | None = 40.0) -> dict[str, bool]:
    """A step at 10 s after which the bound is broken for some time."""
    one = controlled(
        30.0,
        lambda at_s: 300.0 if 10 <= at_s < 10 + broken_s else 8.0,
        [6] * 6 + [12] * 9,
        effect_ms=effect_ms,
    )
    return verdicts(control_reaction.summarise([(10.0, one)])[1])


def test_reaction_counts_the_intervals_until_the_bound_holds_again() -> None:
    assert all(reaction(3 * INTERVAL_S).values())
    assert reaction(3 * INTERVAL_S + 0.6)["adjustment intervals until the bound holds again"] is False
    assert reaction(20.0)["adjustment intervals until the bound holds again"] is False
    assert reaction(2.0, effect_ms=1_001.0)["ms from decision to effect"] is False
    assert reaction(2.0, effect_ms=None)["ms from decision to effect"] is False


def test_only_a_scale_up_after_the_step_counts() -> None:
    one = controlled(30.0, lambda _: 8.0, [4] * 2 + [6] * 6 + [12] * 7)
    found = control_reaction.first_scale_up(one, 10.0)
    assert found is not None
    assert found.decision.parallelism == {"tester": 12}
    assert control_reaction.first_scale_up(one, 20.0) is None


def span(begin_s: float, end_s: float, cpu_s: float) -> CpuSpan:
    return CpuSpan(BEGAN_NS + round(begin_s * NS_PER_S), BEGAN_NS + round(end_s * NS_PER_S), cpu_s)


def batching(used_ms: float, followed_s: float, cpu_s: float) -> dict[str, bool]:
    def latency_ms(at_s: float) -> float:
        return used_ms if at_s < 20 + followed_s else 30.0

    at_once = control_batching.Turn(controlled(20.0, lambda _: 1.0, [1] * 10), span(10.0, 20.0, 2.0))
    nephele = control_batching.Turn(
        controlled(40.0, latency_ms, [1] * 20), span(10.0, 20.0, cpu_s), tightened_s=20.0
    )
    return verdicts(control_batching.summarise({"at_once": [at_once], "nephele": [nephele]})[1])


def test_batching_uses_the_bound_and_follows_it() -> None:
    assert all(batching(80.0, 2 * INTERVAL_S, 1.0).values())
    assert batching(55.0, 1.0, 1.0)["share of the bound used"] is False
    assert batching(96.0, 1.0, 1.0)["share of the bound used, at most"] is False
    assert batching(80.0, 2 * INTERVAL_S + 1.1, 1.0)["intervals until a tighter bound holds"] is False
    assert batching(80.0, 1.0, 1.1)["CPU per item, nephele / at once"] is False


def chain_turn(
    mean_ms: float, cpu_s: float, chains: list[list[str]], loads: list[float]
) -> control_chaining.Turn:
    last = Cycle(0, BEGAN_AT_S, pipeline([*loads], chains=chains), decision("nephele", 1))
    one = controlled(5.0, lambda _: mean_ms, [1])
    one.cycles[:] = [last]
    return control_chaining.Turn(one, span(0.0, 5.0, cpu_s))


def test_cpu_counts_for_the_items_due_in_its_time() -> None:
    one = controlled(20.0, lambda _: 300.0, [1] * 10)
    assert one.cpu_us_per_item(span(10.0, 20.0, 2.0)) == pytest.approx(2_000.0)
    assert one.cpu_us_per_item(span(30.0, 40.0, 2.0)) is None


def chaining(chained_ms: float, cpu_s: float, together: int, heavy: list[list[str]]) -> dict[str, bool]:
    names = ["t0", "t1", "t2", "t3"]
    light = [names[:together], *([name] for name in names[together:])]
    turns = {
        "unchained": [chain_turn(30.0, 1.0, [[name] for name in names], [0.1] * 4)],
        "chained": [chain_turn(chained_ms, cpu_s, light, [0.1] * 4)],
        "heavy": [chain_turn(30.0, 1.0, heavy, [0.4] * 4)],
    }
    return verdicts(control_chaining.summarise(turns)[1])


def test_chaining_halves_latency_and_spares_heavy_tasks() -> None:
    apart = [["t0", "t1"], ["t2", "t3"]]
    assert all(chaining(14.0, 0.6, 4, apart).values())
    assert chaining(16.0, 0.6, 4, apart)["mean latency, unchained / chained"] is False
    assert chaining(14.0, 0.7, 4, apart)["CPU per item, chained / unchained"] is False
    assert chaining(14.0, 0.6, 3, apart)["light tasks in one process"] is False
    together = chaining(14.0, 0.6, 4, [["t0", "t1", "t2", "t3"]])
    assert together["load of the heaviest process of heavy tasks"] is False


def words(configurations: list[tuple[int, int]], cycles_each: int = 31) -> control_wordcount.Turn:
    tasks: dict[str, Any] = {"source": {"kind": "source", "parallelism": 1}}
    made = []
    for place in range(len(configurations) * cycles_each):
        splitters, counters = configurations[place // cycles_each]
        stages = {"splitter": splitters, "counter": counters}
        described = {
            n: {"kind": "task", "parallelism": p, "max": 40, "elastic": True} for n, p in stages.items()
        }
        shot = counting({**tasks, **described})
        made.append(Cycle(place, BEGAN_AT_S + place * INTERVAL_S, shot, decision("ds2", 1)))
    return control_wordcount.Turn(made)


def counting(tasks: dict[str, Any]) -> Snapshot:
    streams = [{"from": "source", "to": "splitter"}, {"from": "splitter", "to": "counter"}]
    return decode_snapshot({"version": 1, "interval_s": INTERVAL_S, "tasks": tasks, "streams": streams})


def test_word_count_takes_one_step_and_stays() -> None:
    best = control_wordcount.OPTIMUM
    assert best == (5, 10)

    def verdict(*path: tuple[int, int]) -> dict[str, bool]:
        return verdicts(control_wordcount.summarise({"under-provisioned": words(list(path))})[1])

    assert all(verdict((1, 1), best).values())
    assert verdict((1, 1), (3, 3), best)["steps"] is False
    assert verdict((1, 1), (6, 10))["replicas beside the optimum"] is False
    assert words([(1, 1), best], cycles_each=29).rest_s() < control_wordcount.REST_S


def test_replicas_may_change_an_interval_earlier_or_later() -> None:
    assert control_simulator.difference([2, 2, 8, 8], [2, 8, 8, 8]) == 0
    assert control_simulator.difference([2, 2, 2, 8, 8], [2, 2, 2, 6, 6]) == 2
    assert control_simulator.difference([2, 2, 2, 2, 8], [8, 8, 8, 8, 8]) == 6


def test_the_simulator_predicts_what_it_is_told() -> None:
    cycles = [Cycle(n, BEGAN_AT_S, snapshot(4, latency_ms=3.0), decision("static", 4)) for n in range(5)]
    figures, checks = control_simulator.summarise(
        {"same": control_simulator.Recorded(cycles, control_plan("static"))}
    )
    assert figures["same"]["measured_mean_ms"] == pytest.approx(10.0)
    assert figures["same"]["largest_difference"] == 0
    assert verdicts(checks)["replicas beside the measured ones"]


def test_a_flow_that_cannot_scale_is_compared_by_its_latency_alone() -> None:
    seen = snapshot(4)
    tester = msgspec.structs.replace(seen.tasks["tester"], elastic=False)
    seen = msgspec.structs.replace(seen, tasks={**seen.tasks, "tester": tester})
    cycles = [Cycle(n, BEGAN_AT_S, seen, decision("static", 4)) for n in range(5)]
    figures, checks = control_simulator.summarise(
        {"fixed": control_simulator.Recorded(cycles, control_plan("static"), begin_s=0.0)}
    )
    assert figures["fixed"]["replicas"] == {}
    assert [check.name for check in checks] == ["simulator, fixed: error of the mean latency"]


def test_only_the_time_with_the_wide_bound_is_simulated() -> None:
    one = controlled(40.0, lambda _: 1.0, [1] * 20)
    turn = control_batching.Turn(one, span(10.0, 20.0, 1.0), tightened_s=20.0)
    assert turn.cycles_before_tightening() == one.cycles[:10]


def test_experiments_run_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    ran: list[tuple[str, Effort]] = []

    def fake(name: str) -> Any:
        def experiment(effort: Effort) -> control.Section:
            ran.append((name, effort))
            return {"name": name}, [Check(name, 1, "==", 1)], {}

        return experiment

    for name in control.EXPERIMENTS:
        monkeypatch.setitem(control.EXPERIMENTS, name, fake(name))
    assert control.bench(Effort.FULL, ["batching"]).ok
    assert control.bench(Effort.QUICK).ok
    assert ran == [("batching", Effort.FULL), ("reaction", Effort.QUICK)]
    ran.clear()
    control.bench(Effort.FULL)
    assert [name for name, _ in ran] == list(control.EXPERIMENTS)
    assert set(POLICIES) == {"nephele", "static", "penstock", "ds2", "mape", "threshold"}
