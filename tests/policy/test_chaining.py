"""Task chaining: exact partitions, never above the limit, as few chains as possible."""

import itertools
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.policy.chaining import (
    chain_2012,
    chain_tasks,
    longest_series,
    partition,
    partitions,
    primary_chains,
)
from tests.policy.snapshots import pipeline

loads_of = st.lists(st.floats(0, 1.2), min_size=1, max_size=7)


def named(loads: list[float]) -> dict[str, float]:
    return {f"t{index}": load for index, load in enumerate(loads)}


@given(loads_of, st.floats(0.1, 1))
def test_a_partition_is_exact_and_below_the_limit(loads: list[float], limit: float) -> None:
    known = named(loads)
    chains = partition(tuple(known), known, limit)
    assert [name for chain in chains for name in chain] == list(known)
    for chain in chains:
        assert len(chain) == 1 or sum(known[name] for name in chain) <= limit


@given(loads_of, st.floats(0.1, 1))
def test_no_smaller_partition_would_do(loads: list[float], limit: float) -> None:
    known = named(loads)
    chosen = partition(tuple(known), known, limit)

    def variance(chains: list[tuple[str, ...]]) -> float:
        sums = [sum(known[name] for name in chain) for chain in chains]
        mean = sum(sums) / len(sums)
        return sum((value - mean) ** 2 for value in sums) / len(sums)

    alone = variance([(name,) for name in known])
    for count in range(1, len(chosen)):
        for chains in partitions(tuple(known), count):
            too_much = any(sum(known[name] for name in chain) > limit for chain in chains)
            assert too_much or variance(chains) > alone


def test_all_the_places_to_cut() -> None:
    primary = tuple("abcde")
    assert [[len(c) for c in chains] for chains in partitions(primary, 3)] == [
        [1, 1, 3], [1, 2, 2], [1, 3, 1], [2, 1, 2], [2, 2, 1], [3, 1, 1],
    ]  # fmt: skip
    assert len(list(partitions(primary, 1))) == 1


def test_tasks_of_equal_load_are_chained_too() -> None:
    assert chain_tasks(pipeline([0.2, 0.2, 0.2]), 0.9).chains == [["t0", "t1", "t2"]]


def test_a_chain_that_became_too_much_comes_apart() -> None:
    chaining = chain_tasks(pipeline([0.6, 0.5, 0.1], chains=[["t0", "t1", "t2"]]), 0.9)
    assert chaining.chains == [["t0"], ["t1", "t2"]]
    (reason,) = chaining.reasons
    assert (reason.before, reason.after) == (["t0+t1+t2"], ["t0", "t1+t2"])
    assert reason.why == "as few processes as possible whose load stays below the limit"


def test_a_primary_chain_ends_where_streams_meet_or_workers_differ() -> None:
    assert primary_chains(pipeline([0.1] * 4)) == [("t0", "t1", "t2", "t3")]
    assert primary_chains(pipeline([0.1] * 3, wiring="round_robin")) == [("t0",), ("t1",), ("t2",)]
    apart: dict[str, dict[str, Any]] = {"t0": {"worker": ["e1"]}, "t1": {"worker": ["e2"]}}
    assert primary_chains(pipeline([0.1] * 3, tasks=apart)) == [("t0",), ("t1", "t2")]
    assert primary_chains(pipeline([0.1] * 3, tasks={"t1": {"parallelism": 5}})) == [
        ("t0",),
        ("t1",),
        ("t2",),
    ]
    assert primary_chains(pipeline([0.1] * 3, constrained=False)) == []


def test_a_chain_whose_tasks_no_longer_fit_comes_apart() -> None:
    snapshot = pipeline([0.1, 0.1], tasks={"t1": {"parallelism": 5}}, chains=[["t0", "t1"]])
    assert chain_tasks(snapshot, 0.9).chains == [["t0"], ["t1"]]


@pytest.mark.parametrize("chains", [[], [["t0"], ["t1", "t2"]]])
def test_unknown_loads_leave_the_chains_alone(chains: list[list[str]]) -> None:
    chaining = chain_tasks(pipeline([0.1, None, 0.1], chains=chains), 0.9)
    assert chaining.chains == (chains or [["t0"], ["t1"], ["t2"]])
    assert chaining.reasons[0].why == "t1.utilization_max was not measured, so it stays"


def test_chains_of_other_tasks_are_kept() -> None:
    assert chain_tasks(pipeline([0.1, 0.1], chains=[["decode"], ["merge"]]), 0.9).chains == [
        ["decode"],
        ["merge"],
        ["t0", "t1"],
    ]


@given(loads_of, st.floats(0.1, 1))
def test_the_2012_rule_takes_the_longest_series(loads: list[float], limit: float) -> None:
    known = named(loads)
    chains = longest_series(tuple(known), known, limit)
    assert [name for chain in chains for name in chain] == list(known)
    longest = max(len(chain) for chain in chains)
    for begin, end in itertools.combinations(range(len(loads) + 1), 2):
        if end - begin > longest:
            assert sum(loads[begin:end]) >= limit - 1e-12


def test_the_2012_rule_waits_until_the_constraint_is_broken() -> None:
    # three tasks of 2 ms and four streams of 4 ms: 22 ms
    assert chain_2012(pipeline([0.2, 0.3, 0.5], bound_ms=10), 0.9).chains == [["t0", "t1"], ["t2"]]
    held = chain_2012(pipeline([0.2, 0.3, 0.5], bound_ms=30), 0.9)
    assert held.chains == [["t0"], ["t1"], ["t2"]]
    assert held.reasons[0].why == "no constraint on it is known to be broken, so it stays"
    joined = chain_2012(pipeline([0.2, 0.3, 0.1], bound_ms=10, chains=[["t0", "t1"], ["t2"]]), 0.9)
    assert joined.chains == [["t0", "t1"], ["t2"]]
    assert joined.reasons[0].why == "it is chained already, so it stays"
    unknown = chain_2012(pipeline([0.2, None], bound_ms=1), 0.9)
    assert unknown.reasons[0].why == "t1.cpu was not measured, so it stays"


def test_a_task_that_forbids_it_is_in_no_chain() -> None:
    free = pipeline([0.1, 0.1, 0.1, 0.1])
    assert chain_tasks(free, 0.9).chains == [["t0", "t1", "t2", "t3"]]
    kept = pipeline([0.1, 0.1, 0.1, 0.1], tasks={"t1": {"chain": False}}, bound_ms=1)
    assert primary_chains(kept) == [("t0",), ("t1",), ("t2", "t3")]
    assert chain_tasks(kept, 0.9).chains == [["t2", "t3"]]
    assert chain_2012(kept, 0.9).chains == [["t2", "t3"]]
