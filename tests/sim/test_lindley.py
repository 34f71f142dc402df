"""Queues against Lindley's recursion step by step, and against queueing theory."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.sim.distributions import Deterministic, Distribution, Exponential, Gamma, LogNormal
from penstock.sim.lindley import equal_work_departures, single_server, start_times

LOAD = 0.7
CUSTOMERS = 4_000_000


def recursion(arrival: list[float], work: list[float], free_at: float) -> list[float]:
    starts = []
    for arrives, takes in zip(arrival, work, strict=True):
        starts.append(max(arrives, free_at))
        free_at = starts[-1] + takes
    return starts


queues = st.lists(
    st.tuples(
        st.lists(st.tuples(st.floats(0, 10), st.floats(0, 3)), max_size=15),
        st.floats(0, 5),
    ),
    min_size=1,
    max_size=6,
)


@given(queues)
def test_many_servers_follow_the_recursion_each_on_its_own(
    servers: list[tuple[list[tuple[float, float]], float]],
) -> None:
    expected: list[float] = []
    arrival: list[float] = []
    work: list[float] = []
    first: list[int] = []
    free: list[float] = []
    for jobs, free_at in servers:
        if not jobs:
            continue
        arrivals = sorted(arrives for arrives, _ in jobs)
        works = [takes for _, takes in jobs]
        first.append(len(arrival))
        free.append(free_at)
        expected += recursion(arrivals, works, free_at)
        arrival += arrivals
        work += works
    found = start_times(np.array(arrival), np.array(work), np.array(first, dtype=np.int64), np.array(free))
    assert found.tolist() == pytest.approx(expected, abs=1e-9)


@given(st.lists(st.floats(0, 10), min_size=2, max_size=40), st.floats(0.01, 1), st.integers(1, 39))
def test_a_run_cut_in_two_is_the_same_run(times: list[float], work: float, cut: int) -> None:
    arrival = np.array(sorted(times))
    cut = min(cut, arrival.size - 1)
    whole = single_server(arrival, np.full(arrival.size, work))
    head = single_server(arrival[:cut], np.full(cut, work))
    rest = arrival.size - cut
    tail = single_server(arrival[cut:], np.full(rest, work), free_at=head[-1] + work)
    assert np.concatenate([head, tail]) == pytest.approx(whole, abs=1e-9)


@given(st.lists(st.floats(0, 10), min_size=1, max_size=30), st.floats(0.01, 1), st.floats(0, 5))
def test_equal_work_is_a_special_case(times: list[float], work: float, free_at: float) -> None:
    arrival = np.array(sorted(times))
    departures = equal_work_departures(arrival[:, None], work, np.array([free_at]))[:, 0]
    starts = recursion(arrival.tolist(), [work] * arrival.size, free_at)
    assert departures.tolist() == pytest.approx([start + work for start in starts], abs=1e-9)


@pytest.mark.parametrize(
    ("name", "service"),
    [("M/M/1", Exponential()), ("M/D/1", Deterministic()), ("M/G/1", Gamma(1.4)), ("M/G/1", LogNormal(0.8))],
)
def test_mean_wait_is_that_of_pollaczek_and_khinchine_within_2_percent(
    name: str, service: Distribution
) -> None:
    rng = np.random.Generator(np.random.SFC64(11))
    arrival = np.cumsum(rng.standard_exponential(CUSTOMERS) / LOAD)
    wait = single_server(arrival, service.sample(rng, CUSTOMERS)) - arrival
    theory = LOAD * (1.0 + service.scv) / (2.0 * (1.0 - LOAD))
    assert wait.mean() == pytest.approx(theory, rel=0.02), name


@pytest.mark.parametrize("gaps", [Gamma(0.5), Gamma(1.5)])
@pytest.mark.parametrize("service", [Gamma(0.5), Gamma(1.5)])
def test_kingmans_bound_holds(gaps: Gamma, service: Gamma) -> None:
    rng = np.random.Generator(np.random.SFC64(5))
    count = 1_000_000
    arrival = np.cumsum(gaps.sample(rng, count) / LOAD)
    wait = single_server(arrival, service.sample(rng, count)) - arrival
    variance = gaps.scv / LOAD**2 + service.scv
    assert wait.mean() <= LOAD * variance / (2.0 * (1.0 - LOAD)) * 1.01
