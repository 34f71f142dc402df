"""Changes that made things worse are undone."""

import msgspec

from penstock.policy.guards.rollback import Rollback
from penstock.stats.snapshot import ConstraintSpec, Snapshot, TaskStats
from tests.policy.guards.scripted import snapshot, steps, task

GUARD = Rollback(tolerance=0.1, settle_s=5, memory_s=100, load_tolerance=0.1)


def state(replicas: int, processed: float, latency_ms: float = 1.0, rate: float = 20.0) -> Snapshot:
    """Twenty items a second for five seconds, of which `processed` were."""
    source = TaskStats(kind="source", parallelism=1, rate_total=rate)
    worker = task(replicas, processed_total=processed, latency_ms=latency_ms)
    bound = ConstraintSpec(name="c", sequence=["a"], latency_ms=10)
    return msgspec.structs.replace(snapshot({"source": source, "a": worker}), constraints=[bound])


def test_less_delivered_is_undone_and_not_tried_again() -> None:
    bad = [(state(2, 60.0), {"a": 2})] * 2 + [(state(2, 60.0), {"a": 3})]
    decisions = steps(GUARD, [(state(4, 100.0), {"a": 2}), *bad, (state(4, 100.0), {"a": 2})])
    assert [d.parallelism["a"] for d in decisions] == [2, 2, 2, 4, 4]
    assert decisions[3].reasons[-1].why == "less of the load is delivered since the last change; it is undone"
    assert decisions[3].refused[0].after == 3
    assert decisions[4].refused[0].why == (
        "this configuration was undone under the same load because it made things worse"
    )


def test_another_load_may_try_again() -> None:
    script = [
        (state(4, 100.0), {"a": 2}),
        *[(state(2, 60.0), {"a": 2})] * 3,
        (state(4, 50.0, rate=10.0), {"a": 2}),
    ]
    assert [d.parallelism["a"] for d in steps(GUARD, script)] == [2, 2, 2, 4, 2]


def test_a_good_change_stays() -> None:
    script = [(state(2, 60.0), {"a": 4}), (state(4, 100.0), {"a": 4}), (state(4, 60.0), {"a": 4})]
    assert [d.parallelism["a"] for d in steps(GUARD, script)] == [4, 4, 4]


def test_a_scale_down_that_breaks_a_constraint_is_undone() -> None:
    script = [(state(4, 100.0), {"a": 2}), *[(state(2, 100.0, latency_ms=12.0), {"a": 2})] * 3]
    decisions = steps(GUARD, script)
    assert decisions[3].parallelism == {"a": 4}
    assert decisions[3].reasons[-1].constraint == "c"


def test_a_constraint_broken_after_a_scale_up_is_not_its_fault() -> None:
    script = [(state(2, 100.0), {"a": 4}), *[(state(4, 100.0, latency_ms=12.0), {"a": 4})] * 3]
    assert [d.parallelism["a"] for d in steps(GUARD, script)] == [4, 4, 4, 4]


def test_a_change_that_is_not_in_effect_yet_stays_on_trial() -> None:
    bad = [(state(2, 60.0), {"a": 2})] * 3
    script = [(state(4, 100.0), {"a": 2}), (state(4, 100.0), {"a": 4}), *bad]
    assert [d.parallelism["a"] for d in steps(GUARD, script)] == [2, 4, 2, 2, 4]


def test_the_verdict_waits() -> None:
    patient = Rollback(tolerance=0.1, settle_s=10, memory_s=100, load_tolerance=0.1)
    bad = [(state(2, 60.0), {"a": 2})] * 3
    script = [(state(4, 100.0), {"a": 2}), *bad, (state(2, 100.0), {"a": 2})]
    assert [d.parallelism["a"] for d in steps(patient, script)] == [2, 2, 2, 2, 2]
