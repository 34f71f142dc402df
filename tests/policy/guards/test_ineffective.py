"""Scale-ups that did not help are not repeated."""

from penstock.policy.decision import Decision
from penstock.policy.guards.ineffective import Ineffective
from penstock.stats.snapshot import Snapshot, TaskStats
from tests.policy.guards.scripted import snapshot, steps, task

GUARD = Ineffective(min_gain=0.1, memory_s=100, load_tolerance=0.1)


def state(replicas: int, processed: float, utilization: float, rate: float = 20.0) -> Snapshot:
    source = TaskStats(kind="source", parallelism=1, rate_total=rate)
    return snapshot(
        {"source": source, "a": task(replicas, processed_total=processed, utilization=utilization)}
    )


def second(after: Snapshot) -> Decision:
    """The second of two scale-ups, given what the first one from 2 to 4 replicas led to."""
    return steps(GUARD, [(state(2, 100.0, 1.0), {"a": 4}), (after, {"a": 8})])[1]


def test_neither_more_work_nor_less_load_means_that_it_did_not_help() -> None:
    decision = second(state(4, 101.0, 0.99))
    assert decision.parallelism == {"a": 4}
    assert decision.refused[0].why == (
        "going from 2 to 4 replicas brought 2% of what linear scaling would, less than 10%:"
        " something else is the limit"
    )


def test_more_work_is_an_effect() -> None:
    assert second(state(4, 150.0, 1.0)).parallelism == {"a": 8}


def test_less_load_is_an_effect() -> None:
    assert second(state(4, 100.0, 0.6)).parallelism == {"a": 8}


def test_another_load_proves_nothing() -> None:
    assert second(state(4, 101.0, 0.99, rate=40.0)).parallelism == {"a": 8}


def test_what_was_not_measured_proves_nothing() -> None:
    assert second(snapshot({"a": task(4, processed_total=None, service_ms=1.0)})).parallelism == {"a": 8}


def test_scale_downs_are_free_and_end_the_memory() -> None:
    bad = state(4, 101.0, 0.99)
    script = [(state(2, 100.0, 1.0), {"a": 4}), (bad, {"a": 3}), (bad, {"a": 8})]
    assert [d.parallelism["a"] for d in steps(GUARD, script)] == [4, 3, 8]


def test_the_memory_fades() -> None:
    script = [(state(2, 100.0, 1.0), {"a": 4}), *[(state(4, 101.0, 0.99), {"a": 8})] * 2]
    assert [d.parallelism["a"] for d in steps(GUARD, script, interval_s=60)] == [4, 4, 8]


def test_a_small_step_proves_nothing() -> None:
    script = [(state(20, 100.0, 1.0), {"a": 22}), (state(22, 100.0, 1.0), {"a": 24})]
    assert [d.parallelism["a"] for d in steps(GUARD, script)] == [22, 24]
