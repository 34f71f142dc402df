"""Random flows and loads: the same by their seed, of all the kinds that were promised."""

from pathlib import Path

import pytest

from penstock.arena.loads import KINDS, load_of_kind, load_of_trace
from penstock.arena.random_flows import random_flow, set_aside
from penstock.arena.traces import TRACES, find_traces
from penstock.arena.workloads import gentle, workloads
from penstock.sim.load import Curve

FULL = Curve.constant(1.0)
FLOWS = [random_flow(seed, FULL, 100.0) for seed in range(1, 101)]


def test_the_same_seed_is_the_same_flow() -> None:
    assert repr(random_flow(7, FULL, 100.0)) == repr(FLOWS[6])
    assert len({repr(flow) for flow in FLOWS}) == len(FLOWS)


def test_all_kinds_of_flows_appear() -> None:
    assert {stream.wiring for flow in FLOWS for stream in flow.streams} == {"round_robin", "key", "broadcast"}
    assert {type(task.service).__name__ for flow in FLOWS for task in flow.tasks if task.elastic} == {
        "Deterministic",
        "Exponential",
        "Gamma",
        "LogNormal",
        "ShiftedExponential",
    }
    ratios = [stream.ratio.at(0.0) for flow in FLOWS for stream in flow.streams]
    assert min(ratios) < 0.5
    assert max(ratios) >= 3.0
    assert {len(flow.constraints) for flow in FLOWS} == {1, 2}


def test_changes_take_from_a_tenth_of_a_second_to_half_a_minute() -> None:
    delays_s = [flow.cluster.restart_s or flow.cluster.replica_start_s for flow in FLOWS]
    assert 0.1 <= min(delays_s) < 0.3
    assert 15.0 < max(delays_s) <= 30.0
    assert 5 <= sum(flow.cluster.restart_s is not None for flow in FLOWS) <= 30


def test_enough_replicas_for_the_peak_may_be_had() -> None:
    for flow in FLOWS:
        rates = {task.name: 0.0 if task.load is None else task.load.at(0.0) for task in flow.tasks}
        for task in flow.tasks:
            for stream in flow.outputs_of(task.name):
                rates[stream.receiver] += rates[task.name] * stream.ratio.at(0.0)
        assert all(rates[task.name] * task.service_s < task.bounds[1] for task in flow.tasks if task.elastic)


@pytest.mark.parametrize("kind", KINDS)
def test_loads_are_shares_of_a_peak_that_their_seed_decides(kind: str) -> None:
    load = load_of_kind(kind, 300.0, seed=1)
    assert load == load_of_kind(kind, 300.0, seed=1)
    assert load != load_of_kind(kind, 300.0, seed=2)
    assert 0.0 < min(load.values) <= max(load.values) <= 1.0
    assert (len(set(load.values)) == 1) == (kind == "constant")


def test_a_load_that_changes_by_a_fifth_while_anybody_reacts_is_not_gentle() -> None:
    flow = FLOWS[0]
    react_s = flow.interval_s + (flow.cluster.restart_s or flow.cluster.replica_start_s)
    jump = Curve((0.0, 50.0), (0.5, 0.61))
    slow = Curve((0.0, 40.0, 41.0 + react_s), (0.5, 0.58, 0.66))
    assert gentle(flow)
    assert not gentle(random_flow(1, jump, 100.0))
    assert gentle(random_flow(1, slow, 100.0))


def test_a_part_of_a_trace_is_played_by_its_own_peak() -> None:
    load = load_of_trace([10.0, 20.0, 40.0, 20.0], 10.0, seed=1)
    assert load.values == (0.25, 0.5, 1.0, 0.5)


def test_traces_that_are_missing_are_named(tmp_path: Path) -> None:
    rates, missing = find_traces(tmp_path)
    assert rates == {}
    assert missing == [f"random, {name}: {tmp_path / file} is not there" for name, file in TRACES.items()]
    path = tmp_path / TRACES["trace of taxis"].with_suffix("")
    path.parent.mkdir()
    path.write_text("timestamp,value\n0,5\n10,7\n", encoding="utf-8")
    here = {**TRACES, "trace of taxis": path.relative_to(tmp_path)}
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("penstock.arena.traces.TRACES", here)
        rates, missing = find_traces(tmp_path)
    assert rates == {"trace of taxis": (5.0, 7.0)}
    assert len(missing) == 1


def test_a_fifth_of_the_random_flows_is_set_aside() -> None:
    usual = workloads(quick=True, seeds=8, traces={"trace": [1.0, 2.0]})
    kept = workloads(quick=True, seeds=8, traces={"trace": [1.0, 2.0]}, aside=True)
    seeds = {seed for one in usual if one.name.startswith("random") for seed in one.seeds}
    asides = {seed for one in kept for seed in one.seeds}
    assert (len(seeds), len(asides)) == (8, 2)
    assert not seeds & asides
    assert all(set_aside(seed) for seed in asides)
    assert {one.name for one in kept} == {one.name for one in usual if one.name.startswith("random")}
    assert "random, trace" in {one.name for one in kept}
