"""The PrimeTest flow: its numbers, its profile, its graph."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import penstock
from penstock.apps.primetest import drop, flow, number, prime_flow, profile, tester
from penstock.apps.probable_prime import is_probable_prime
from penstock.io.schedule import constant, steps
from penstock.testing import Collector, run


@given(st.integers(0, 5), st.integers(0, 1000), st.integers(0, 5))
def test_numbers_depend_on_partition_index_and_seed_only(partition: int, index: int, seed: int) -> None:
    first = number(partition, index, seed, due_ns=1)
    assert first == number(partition, index, seed, due_ns=1)
    assert len(first[4]) == 32
    assert first[4] != number(partition, index + 1, seed, due_ns=1)[4]


def test_the_tester_marks_primes() -> None:
    prime = (2**255 - 19).to_bytes(32, "big")
    assert tester((0, 7, 9, 0, prime)) == (0, 7, 9, 1, prime)
    assert tester((0, 7, 9, 0, bytes(32))) == (0, 7, 9, 0, bytes(32))


def test_about_one_number_in_177_is_prime() -> None:
    found = sum(is_probable_prime(int.from_bytes(number(0, k, 1, 0)[4], "big")) for k in range(4000))
    assert 8 < found < 45


@given(st.floats(10, 1000))
def test_the_profile_is_as_long_as_asked_symmetric_and_reaches_its_height(seconds: float) -> None:
    schedule = profile(seconds)
    assert schedule.starts_s[-1] == pytest.approx(seconds)
    assert list(schedule.rates_per_s) == list(reversed(schedule.rates_per_s))
    assert max(schedule.rates_per_s) == 20_000
    assert min(schedule.rates_per_s) == 2_000


@pytest.mark.parametrize("work", ["cpu", "rate_limited"])
def test_the_graph_is_that_of_the_thesis(work: Any) -> None:
    graph = prime_flow(constant(10), drop, testers=penstock.elastic(1, 3), work=work).graph()
    assert [task.name for task in graph.tasks] == ["numbers", "tester", "results"]
    assert {stream.wiring for stream in graph.streams} == {"round_robin"}
    assert graph.constraints[0].sequence == ("numbers->tester", "tester", "tester->results")
    assert graph.constraints[0].latency_ms == 20


def test_the_application_is_a_valid_flow() -> None:
    assert flow().graph().name == "primetest"
    assert flow(work="rate_limited").graph().task("tester").parallelism.max == 16


def test_the_numbers_that_arrive_are_tested() -> None:
    result = run(prime_flow(steps([(2, 100)]), drop, testers=3, lifetime="5 ms", seed=4))
    assert sorted(result["results"]) == sorted(
        tester(number(0, index, 4, round(index * 1e7))) for index in range(200)
    )


@pytest.mark.spark
def test_the_primes_found_on_spark_are_those_of_a_single_process() -> None:
    count, seed = 2000, 4
    with Collector() as collector:
        testers = penstock.elastic(1, 3)
        job = penstock.run(
            prime_flow(steps([(2, count / 2)]), collector, testers=testers, seed=seed), policy=None
        )
        if not job.await_termination(1):
            job.set_active("tester", 3)
        assert job.await_termination(60)
        found = {index: bool(mark) for _, index, _, mark, _ in collector.items()}
        assert len(collector.items()) == count
    numbers = (int.from_bytes(number(0, index, seed, 0)[4], "big") for index in range(count))
    assert found == dict(enumerate(map(is_probable_prime, numbers)))
    assert any(found.values())
